"""An identity provider (OpenID Connect) on a port of this machine: in a browser, a button for each person signs that person in.

It checks what a client sends, with the proof of the key (PKCE) and the client's secret, and answers each code once.
"""

import base64
import hashlib
import html
import http.server
import json
import secrets
import subprocess
import threading
import time
import urllib.parse

CLIENT, SECRET = "tidemark-tests", "s&cr t/ä"
PEOPLE = {
    "nora": {"sub": "nora-1", "email": "nora@example.net", "email_verified": True, "name": "Nora Lund"},
    "emil": {"sub": "emil-1", "email": "emil@example.net", "email_verified": True, "name": "Emil Dahl"},
}


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider:
    def __init__(self, folder):
        self.key, self.grants, self.wrongs = folder / "provider.pem", {}, []
        subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)
        modulus = subprocess.run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"], check=True, capture_output=True, text=True)
        self.modulus = bytes.fromhex(modulus.stdout.strip().removeprefix("Modulus="))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"provider": self}))
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def options(self, folder):
        """The options of a server that uses the provider."""
        secret = folder / "provider-secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        return ["--identity-provider", self.issuer, "--identity-client-id", CLIENT, "--identity-client-secret-file", str(secret),
                "--identity-name", "Example Ltd", "--identity-sign-up"]

    def stop(self):
        self.server.shutdown()

    def signed(self, claims):
        text = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "one", "typ": "JWT"}, claims))
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(), check=True, capture_output=True)
        return f"{text}.{encoded(signature.stdout)}"


class Handler(http.server.BaseHTTPRequestHandler):
    provider = None

    def log_message(self, *_):
        pass

    def reply(self, body, kind="application/json", status=200, **headers):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in ({"Content-Type": kind, "Content-Length": str(len(data))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, what):
        self.provider.wrongs.append(what)
        self.reply({"error": "invalid_request", "error_description": what}, status=400)

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(address.query))
        issuer = self.provider.issuer
        if address.path == "/.well-known/openid-configuration":
            return self.reply({
                "issuer": issuer, "authorization_endpoint": f"{issuer}/authorize", "token_endpoint": f"{issuer}/token", "jwks_uri": f"{issuer}/keys",
                "response_types_supported": ["code"], "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": True})
        if address.path == "/keys":
            return self.reply({"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "n": encoded(self.provider.modulus), "e": "AQAB"}]})
        if address.path == "/authorize":
            return self.authorize(asked)
        if address.path == "/signed-in":
            return self.send_back(asked)
        if address.path == "/favicon.ico":
            return self.reply("", status=404)
        self.refuse(f"no such page: {address.path}")

    def authorize(self, asked):
        wanted = {"client_id": CLIENT, "response_type": "code", "code_challenge_method": "S256"}
        wrong = [name for name, value in wanted.items() if asked.get(name) != value]
        wrong += [name for name in ("state", "nonce", "code_challenge", "redirect_uri") if not asked.get(name)]
        if wrong or "openid" not in asked.get("scope", "").split():
            return self.refuse(f"to be signed in takes other values of {', '.join(wrong) or 'scope'}")
        fields = "".join(f"<input type=hidden name={name} value='{html.escape(value)}'>" for name, value in asked.items())
        people = "".join(f"<form action=/signed-in>{fields}<button name=person value={name}>{person['name']}</button></form>" for name, person in PEOPLE.items())
        self.reply(f"<!doctype html><html lang=en><title>Example Ltd</title><main><h1>Who are you?</h1>{people}</main></html>", "text/html; charset=utf-8")

    def send_back(self, asked):
        code = secrets.token_urlsafe(16)
        self.provider.grants[code] = asked
        query = urllib.parse.urlencode({"code": code, "state": asked["state"], "iss": self.provider.issuer})
        self.reply("", status=302, Location=f"{asked['redirect_uri']}?{query}")

    def do_POST(self):
        sent = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        kind, _, words = self.headers.get("Authorization", "").partition(" ")
        credentials = [urllib.parse.unquote_plus(word) for word in base64.b64decode(words).decode().split(":")]
        if kind != "Basic" or credentials != [CLIENT, SECRET]:
            return self.refuse("the client's secret is another")
        grant = self.provider.grants.pop(sent.get("code"), None)
        if not grant or sent.get("grant_type") != "authorization_code" or sent.get("redirect_uri") != grant["redirect_uri"]:
            return self.refuse("the code is unknown, or was for another address")
        if encoded(hashlib.sha256(sent.get("code_verifier", "").encode()).digest()) != grant["code_challenge"]:
            return self.refuse("the proof of the key is wrong")
        now = int(time.time())
        claims = {"iss": self.provider.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "auth_time": now, "nonce": grant["nonce"]}
        self.reply({"access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "id_token": self.provider.signed(claims | PEOPLE[grant["person"]])})
