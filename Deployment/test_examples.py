#!/usr/bin/env python3
"""Tests of the examples in this folder: systemd's units, compose.yaml, the Dockerfile, the examples for proxies, the alerts. They name only options
that the server has. The programs that read them accept them; a test is skipped if its program is not installed."""

import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
DOCUMENTS = FOLDER.parent / "Documentation"
UNITS = sorted(FOLDER.glob("*.service"))
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def text(name):
    return (FOLDER / name).read_text()


def server_options():
    """The options of the server, with what stands for their values; empty for flags. `make reference CHECK=1` compares this page with the program."""
    page = (DOCUMENTS / "Reference" / "CommandLine.md").read_text().partition("\n## tidemark-server\n")[2]
    return {name: value for name, value in re.findall(r"^\| `--([a-z0-9-]+)(?: <([^>]+)>)?` \|", page, re.MULTILINE)}


def variables():
    """The variables of the environment that the server reads: one for each option, and those that the page on configuration names."""
    page = (DOCUMENTS / "Reference" / "Configuration.md").read_text()
    return {f"TIDEMARK_{name.upper().replace('-', '_')}" for name in OPTIONS} | set(re.findall(r"`(TIDEMARK_[A-Z_]+)`", page))


OPTIONS = server_options()


def uncommented(lines):
    """Lines without the marks that make comments of them."""
    return [re.sub(r"^\s*# ?", "", line) for line in lines]


def commands(unit):
    """The words of each command line of the server in a unit, also of those in comments."""
    joined = re.sub(r"\\\n", " ", "\n".join(uncommented(unit.splitlines())))
    return [shlex.split(line.partition("=")[2]) for line in joined.splitlines() if line.startswith("ExecStart=")]


@functools.cache
def load(name):
    """A YAML file; the test is skipped where no Python has a module that reads it."""
    program = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import yaml"], capture_output=True).returncode == 0:
            read = subprocess.run([python, "-c", program], input=text(name), capture_output=True, text=True)
            if read.returncode:
                raise AssertionError(f"{name}: {read.stderr}")
            return json.loads(read.stdout)
    raise unittest.SkipTest("python3-yaml is not installed")


def find(program):
    found = shutil.which(program, path=PATH)
    if not found:
        raise unittest.SkipTest(f"{program} is not installed")
    return found


class ExampleTests(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def check_words(self, words, place):
        """Checks the options of a command line, and that those with a value have one."""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            self.assertTrue(word.startswith("--"), f"{place}: {word} belongs to no option")
            name, equals, _ = word[2:].partition("=")
            self.assertIn(name, OPTIONS, place)
            if OPTIONS[name] and not equals:
                self.assertTrue(rest and not rest[0].startswith("--"), f"{place}: {word} has no value")
                rest.pop(0)

    def test_the_reference_has_the_servers_options(self):
        self.assertEqual((OPTIONS["port"], OPTIONS["trust-proxy"]), ("port", ""))
        self.assertGreater(len(OPTIONS), 40)

    # Options and variables

    def test_each_option_of_a_units_command_line_is_one_of_the_server(self):
        self.assertEqual([unit.name for unit in UNITS], ["tidemark-cluster.service", "tidemark.service"])
        for unit in UNITS:
            found = commands(unit.read_text())
            self.assertGreaterEqual(len(found), 1, unit.name)
            for words in found:
                self.assertEqual(words[0], "/usr/local/bin/tidemark-server", unit.name)
                self.check_words(words[1:], unit.name)

    def test_each_line_of_a_configuration_that_a_unit_shows_is_an_option(self):
        lines = re.findall(r"^# +([a-z0-9-]+) = (.+)$", text("tidemark-cluster.service"), re.MULTILINE)
        self.assertGreaterEqual(len(lines), 5)
        for name, value in lines:
            self.assertIn(name, OPTIONS)
            self.assertTrue(OPTIONS[name] or value in ("true", "false"), f"{name} = {value}")

    def test_each_option_of_the_image_is_one_of_the_server(self):
        command = json.loads(re.search(r"^CMD (\[.*\])$", text("Dockerfile"), re.MULTILINE)[1])
        self.assertEqual(command[0], "serve")
        self.check_words(command[1:], "Dockerfile")

    def test_each_option_that_an_example_names_is_one_of_the_server(self):
        for name in ("haproxy.cfg.example", "nginx.conf.example", "prometheus-rules.yaml"):
            # Options with a dot are those of exporters.
            options = set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)(?![\w.-])", text(name)))
            self.assertTrue(options, name)
            self.assertLessEqual(options, set(OPTIONS), name)

    def test_each_variable_is_one_that_the_server_reads(self):
        for name in [unit.name for unit in UNITS] + ["compose.yaml", "compose.env.example"]:
            self.assertLessEqual(set(re.findall(r"\bTIDEMARK_[A-Z0-9_]+", text(name))), variables(), name)

    def test_the_examples_of_compose_have_the_variables_that_compose_asks_for(self):
        asked = set(re.findall(r"(?<!\$)\$\{([A-Z_]+)", text("compose.yaml")))
        self.assertEqual(asked, set(re.findall(r"^([A-Z_]+)=", text("compose.env.example"), re.MULTILINE)))

    # Units

    def test_systemd_takes_the_units(self):
        analyze = find("systemd-analyze")
        for unit in UNITS:
            # The program need not be installed here.
            copy = self.folder / unit.name
            copy.write_text(unit.read_text().replace("/usr/local/bin/tidemark-server", "/bin/true"))
            said = subprocess.run([analyze, "verify", "--man=no", copy], capture_output=True, text=True)
            self.assertEqual((said.returncode, said.stdout + said.stderr), (0, ""), unit.name)

    # compose.yaml

    def test_images_of_compose_have_fixed_versions(self):
        services = load("compose.yaml")["services"]
        images = {name: service["image"] for name, service in services.items()}
        for name, image in images.items():
            if image != "tidemark":
                self.assertRegex(image, r"^[\w/.-]+:\d+\.\d+(\.\d+)?$", name)

    def test_services_of_compose_refer_to_nothing_that_is_missing(self):
        compose = load("compose.yaml")
        services = compose["services"]
        for name, service in services.items():
            self.assertLessEqual(set(service.get("depends_on", [])), set(services), name)
            self.assertLessEqual({config["source"] for config in service.get("configs", [])}, set(compose["configs"]), name)
            self.assertLessEqual({volume.partition(":")[0] for volume in service.get("volumes", [])}, set(compose["volumes"]), name)
        servers = {name for name, service in services.items() if service.get("command") == ["serve"]}
        self.assertEqual(set(re.findall(r"server (\w+):8080", compose["configs"]["proxy"]["content"])), servers)
        json.loads(re.sub(r"\$\{\w+\}", "", compose["configs"]["bucket"]["content"]))

    def test_variables_of_compose_have_values_that_the_server_takes(self):
        server = load("compose.yaml")["services"]["server1"]["environment"]
        found = {name.removeprefix("TIDEMARK_").lower().replace("_", "-"): value for name, value in server.items() if name.startswith("TIDEMARK_")}
        for name, value in found.items():
            self.assertIsInstance(value, str, name)
            if not OPTIONS[name]:
                self.assertIn(value, ("true", "false"), name)
            if OPTIONS[name] in ("port", "n"):
                self.assertRegex(value, r"^\d+$", name)

    # Proxies

    def nginx(self):
        """The configurations of nginx, by where they are."""
        example = text("nginx.conf.example")
        first, last = example.index("# server {"), example.rindex("\n# }") + 4
        return {
            "nginx.conf.example": "\n".join(uncommented(example[first:last].splitlines())),
            "compose.yaml": load("compose.yaml")["configs"]["proxy"]["content"].replace("$$", "$"),
        }

    def test_blocks_and_directives_for_nginx_are_whole(self):
        for name, configuration in self.nginx().items():
            depth = 0
            for line in configuration.splitlines():
                line = line.partition("# ")[0].rstrip()
                self.assertTrue(not line or line[-1] in ";{}", f"{name}: {line}")
                depth += line.count("{") - line.count("}")
                self.assertGreaterEqual(depth, 0, f"{name}: {line}")
            self.assertEqual(depth, 0, name)

    def test_proxies_name_the_client_and_pass_all_requests_that_the_server_takes(self):
        for name, configuration in (self.nginx() | {"haproxy.cfg.example": text("haproxy.cfg.example")}).items():
            for header in ("X-Forwarded-For", "X-Forwarded-Proto"):
                self.assertRegex(configuration, rf"(proxy_set_header|http-request set-header) +{header} ", name)
            # A device waits for changes for up to 50 seconds.
            seconds = re.search(r"(?:proxy_read_timeout|timeout server) +(\d+)s", configuration)
            self.assertGreater(int(seconds[1]), 60, name)
        bodies = re.search(r"^\| `--body-size <bytes>` \|.*\(default: (\d+)\)", (DOCUMENTS / "Reference" / "CommandLine.md").read_text(), re.MULTILINE)
        for name, configuration in self.nginx().items():
            megabytes = int(re.search(r"client_max_body_size (\d+)m?;", configuration)[1])
            self.assertTrue(megabytes == 0 or megabytes << 20 >= int(bodies[1]), name)

    def test_haproxy_takes_its_example(self):
        haproxy, openssl = find("haproxy"), find("openssl")
        key, certificate, both = (self.folder / name for name in ("key.pem", "certificate.pem", "both.pem"))
        subprocess.run(
            [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
             "-days", "2", "-subj", "/CN=sync.example.org"], check=True, capture_output=True)
        both.write_text(certificate.read_text() + key.read_text())
        example, place = text("haproxy.cfg.example"), "/etc/haproxy/sync.example.org.pem"
        self.assertIn(place, example)
        fitted = self.folder / "haproxy.cfg"
        fitted.write_text(example.replace(place, str(both)))
        said = subprocess.run([haproxy, "-c", "-f", fitted], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertNotIn("[WARNING]", said.stderr)

    def test_haproxy_checks_servers_without_the_bucket(self):
        self.assertRegex(text("haproxy.cfg.example"), r"option httpchk GET /ready\?without=assets\n")

    # Alerts

    def test_alerts_are_whole(self):
        rules = [rule for group in load("prometheus-rules.yaml")["groups"] for rule in group["rules"]]
        names = [rule["alert"] for rule in rules]
        self.assertEqual(len(set(names)), len(names))
        for rule in rules:
            self.assertLessEqual(set(rule), {"alert", "expr", "for", "annotations"}, rule["alert"])
            self.assertTrue(rule["annotations"]["summary"], rule["alert"])
            self.assertRegex(rule.get("for", "1m"), r"^\d+[smhd]$", rule["alert"])
            for begin, end in ("()", "{}", "[]"):
                self.assertEqual(rule["expr"].count(begin), rule["expr"].count(end), rule["alert"])

    def test_alerts_by_exporters_are_those_of_the_guide(self):
        groups = {group["name"]: group["rules"] for group in load("prometheus-rules.yaml")["groups"]}
        self.assertEqual(list(groups), ["tidemark", "tidemark-exporters"])
        guide = (DOCUMENTS / "Guides" / "Cluster.md").read_text()
        tables = re.findall(r"^\| alert \| when \|.*\n\|[-|]+\n((?:\|.*\n)+)", guide.partition("\n## Monitoring\n")[2], re.MULTILINE)
        self.assertEqual(len(tables), 2)
        whens = [row.split(" | ")[1] for row in tables[1].splitlines()]
        figure = re.compile(r"\b(?:node|pg|patroni|haproxy)_[a-z_]+\b")
        # In the same order.
        self.assertEqual(
            [set(figure.findall(rule["expr"])) for rule in groups["tidemark-exporters"]],
            [set(figure.findall(" ".join(re.findall(r"`([^`]*)`", when)))) for when in whens])

    def test_jobs_that_alerts_name_are_explained(self):
        rules = text("prometheus-rules.yaml")
        head, _, groups = rules.partition("\ngroups:\n")
        for job in set(re.findall(r'job="([^"]+)"', groups)):
            self.assertRegex(head, rf"\b{job}\b(?!-)")

    def test_the_proxy_that_an_alert_asks_about_is_one_of_the_example(self):
        for name in re.findall(r'proxy="([^"]+)"', text("prometheus-rules.yaml")):
            self.assertRegex(text("haproxy.cfg.example"), rf"(?m)^backend {name}$")


if __name__ == "__main__":
    unittest.main()
