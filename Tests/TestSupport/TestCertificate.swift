/// A certificate that is its own authority, and its private key, both for tests alone.
package enum TestCertificate {
    /// Valid for localhost only, for a hundred years.
    package static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBSDCB7qADAgECAgEBMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCWxvY2FsaG9z
        dDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFDESMBAGA1UEAwwJ
        bG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE9ht7QKL/DXnc022j
        bZikVl0KgPh1eteXcngPIvmUlaoS2XGdSePAw49kJ5F7CNLIfVoJ80w0Y0VIsK13
        iJ8LlqMvMC0wGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMA8GA1UdEwEB/wQF
        MAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhALd8btcSogE/YhZdX6lqaldzN/FtlhuX
        MmW3pLRG89mFAiEAigRyk7fNBHnB5qHJeb493bkVxMWo2llc2f5r4idhXAA=
        -----END CERTIFICATE-----
        """
    package static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgdn7mk8JxtL9R6CYd
        LPwh+bLy0r0fs8TazviwelFamIKhRANCAAT2G3tAov8NedzTbaNtmKRWXQqA+HV6
        15dyeA8i+ZSVqhLZcZ1J48DDj2QnkXsI0sh9WgnzTDRjRUiwrXeInwuW
        -----END PRIVATE KEY-----
        """
}
