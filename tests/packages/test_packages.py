"""The packages of a release, made by the scripts that make one and installed as a user would.

Each class has one kind of package. `run` builds what they need; nothing comes from a release that exists.
"""

import glob
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

KARAT = pathlib.Path(os.environ["KARAT"])
ROOT = pathlib.Path(os.environ["KARAT_ROOT"])
WORK = pathlib.Path(os.environ["KARAT_PACKAGES"])
PROFILE = os.environ["KARAT_PROFILE"]
STATIC = pathlib.Path(os.environ.get("KARAT_STATIC", WORK / "karat-static"))
DIST = ROOT / "scripts/dist"
LINUX = "x86_64-unknown-linux-musl"
TARGETS = [LINUX, "aarch64-unknown-linux-musl", "x86_64-apple-darwin", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"]


def run(*words, folder=None, code=0, env=None, **more):
    environment = {k: v for k, v in os.environ.items() if k not in ("GITHUB_STEP_SUMMARY", "CI", "PYTHONPATH")}
    environment.update(env or {})
    ended = subprocess.run(
        [str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True, timeout=900, **more
    )
    shown = f"{words}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    assert code is None or ended.returncode == code, shown
    return ended


def program(name):
    return pathlib.Path(sys.executable).parent / name


def version():
    return re.search(r'(?m)^version = "(.+)"$', (ROOT / "Cargo.toml").read_text())[1]


def megabytes(path):
    return f"{pathlib.Path(path).stat().st_size / 1e6:.1f} MB"


class Scratch(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)

    def first_commands(self, *karat, env=None):
        """What a newcomer types first, each of which must work without anything else installed."""
        folder = self.folder / "first"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        say = lambda *words, code=0: run(*karat, *words, folder=folder, env=env, code=code).stdout
        self.assertEqual(say("--version").strip(), f"karat {version()}")
        said = say("--version", "--verbose")
        self.assertRegex(said, r"(?m)^commit: ([0-9a-f]{40}|unknown)$")
        self.assertRegex(said, r"(?m)^target: \w+-\w+")
        self.assertRegex(said, r"(?m)^features: ")
        say("demo")
        say("check", "--bundled")
        say("init", "--for", "proxy", "--ci", "none")
        say("check")
        self.assertTrue((folder / "karat-report/report.html").is_file())
        # The exit code is Karat's own.
        (folder / "karat.toml").write_text("[[retrieval]]\nwrong = 1\n")
        say("check", code=2)


class Wheel(Scratch):
    @classmethod
    def setUpClass(cls):
        cls.out = WORK / "wheels"
        shutil.rmtree(cls.out, ignore_errors=True)
        # The program is for this machine's C library here; a release has a static one.
        run(sys.executable, ROOT / "packages/python/backend.py", "program", env={"PROFILE": PROFILE})
        module = "python" if PROFILE == "release" else PROFILE
        run(program("maturin"), "build", "--profile", module, "--compatibility", "linux", "--out", cls.out,
            folder=ROOT / "packages/python")
        [cls.wheel] = cls.out.glob("*.whl")
        print(f"the wheel has {megabytes(cls.wheel)}")

    def pythons(self):
        """Every Python from 3.11 on that this machine has."""
        found = {}
        known = glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))
        known += [path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))]
        for path in [*known, sys.executable]:
            said = run(path, "-c", "import sys; print(*sys.version_info[:2])", code=None)
            if said.returncode == 0:
                key = tuple(map(int, said.stdout.split()))
                if key >= (3, 11):
                    found.setdefault(key, path)
        self.assertTrue(found)
        return found

    def test_it_runs_in_fresh_environments(self):
        for key, python in sorted(self.pythons().items()):
            with self.subTest(python=key):
                home = self.folder / f"venv{key[1]}"
                run(python, "-m", "venv", home)
                run(home / "bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", self.wheel)
                self.first_commands(home / "bin/karat")
                said = run(home / "bin/python", "-m", "karat", "--version").stdout
                self.assertEqual(said.strip(), f"karat {version()}")
                run(home / "bin/python", "-m", "karat", "no-such-command", code=2)
                path = run(home / "bin/python", "-c", "import karat; print(karat.find_program())").stdout.strip()
                self.assertEqual(pathlib.Path(path), home / "bin/karat")
                print(f"the wheel runs under Python {key[0]}.{key[1]}")

    def test_it_runs_from_a_folder_of_its_own(self):
        run(program("pip"), "install", "--quiet", "--no-index", "--disable-pip-version-check", "--target",
            self.folder / "here", self.wheel)
        said = run(sys.executable, "-m", "karat", "--version", env={"PYTHONPATH": str(self.folder / "here")}).stdout
        self.assertEqual(said.strip(), f"karat {version()}")


class Npm(Scratch):
    def packed(self, *pairs):
        run(DIST, "npm", self.folder, *pairs)
        made = {}
        for folder in sorted((self.folder / "npm").iterdir()):
            [said] = json.loads(run("npm", "pack", "--json", "--silent", folder, folder=self.folder).stdout)
            made[folder.name] = self.folder / said["filename"]
        return made

    def test_it_is_installed_and_runs(self):
        made = self.packed(f"{LINUX}={KARAT}")
        print(f"npm: karat {megabytes(made['karat'])}, karat-linux-x64 {megabytes(made['karat-linux-x64'])}")
        home = self.folder / "home"
        home.mkdir()
        (home / "package.json").write_text('{"private": true}')
        # From files, so that no registry is asked for the packages of other machines.
        run("npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", made["karat-linux-x64"], made["karat"],
            folder=home)
        self.first_commands(home / "node_modules/.bin/karat")
        said = run("npx", "--no-install", "karat", "--version", folder=home).stdout
        self.assertEqual(said.strip(), f"karat {version()}")

    def test_a_machine_without_a_package_is_told_so(self):
        made = self.packed()
        home = self.folder / "home"
        home.mkdir()
        with tarfile.open(made["karat"]) as packed:
            packed.extractall(home, filter="data")
        said = run("node", home / "package/karat.js", "check", code=3).stderr
        self.assertIn("@karat/linux-x64 is not installed", said)
        run("node", home / "package/karat.js", "--version", env={"KARAT_BINARY": str(KARAT)})
        run("node", home / "package/karat.js", "--version", env={"KARAT_BINARY": "/no/such"}, code=3)

    def test_every_target_has_a_package(self):
        self.packed(*(f"{target}={KARAT}" for target in TARGETS))
        whole = json.loads((self.folder / "npm/karat/package.json").read_text())
        others = [json.loads(path.read_text()) for path in self.folder.glob("npm/karat-*/package.json")]
        self.assertEqual(sorted(whole["optionalDependencies"]), sorted(one["name"] for one in others))
        self.assertEqual({version()}, {one["version"] for one in others} | set(whole["optionalDependencies"].values()))

    def test_signals_reach_the_program(self):
        made = self.packed()
        home = self.folder / "home"
        home.mkdir()
        with tarfile.open(made["karat"]) as packed:
            packed.extractall(home, filter="data")
        waits = home / "waits"
        waits.write_text("#!/bin/sh\ntrap 'echo stopped; exit 7' TERM\necho ready\nwhile :; do sleep 0.1; done\n")
        waits.chmod(0o755)
        child = subprocess.Popen(["node", home / "package/karat.js"], stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "KARAT_BINARY": str(waits)})
        self.assertEqual(child.stdout.readline(), "ready\n")
        child.terminate()
        self.assertEqual((child.communicate(timeout=60)[0], child.returncode), ("stopped\n", 7))


class Static(Scratch):
    def test_it_needs_nothing(self):
        header = STATIC.read_bytes()[:4]
        self.assertEqual(header, b"\x7fELF")
        said = run("ldd", STATIC, code=None)
        self.assertRegex(said.stdout + said.stderr, "statically linked|not a dynamic executable")
        print(f"the static program has {megabytes(STATIC)}")

    def test_it_runs_in_an_empty_root(self):
        self.assertEqual(os.geteuid(), 0, "only root can change the root")
        empty = self.folder / "root"
        empty.mkdir()
        shutil.copy(STATIC, empty / "karat")
        run(KARAT, "init", "project", "--for", "proxy", "--ci", "none", folder=empty)
        self.assertEqual(sorted(os.listdir(empty)), ["karat", "project"])
        inside = lambda *words, code=0: run(shutil.which("chroot"), empty, "/karat", *words, env={"PATH": "/"}, code=code)
        self.assertIn(version(), inside("--version").stdout)
        inside("check", "/project")
        self.assertTrue((empty / "project/karat-report/report.json").is_file())
        # A program that is linked with glibc looks for random numbers in /dev/urandom, which is not there.
        if "musl" in inside("--version", "--verbose").stdout:
            inside("server", "lint", "--", "/karat", "demo-server")


class Release(Scratch):
    def archives(self):
        """A release as the workflow makes it, with this machine's program in the place of every other."""
        os.environ["SOURCE_DATE_EPOCH"] = "1700000000"
        self.addCleanup(os.environ.pop, "SOURCE_DATE_EPOCH")
        out = self.folder / "dist"
        small = self.folder / "small"
        small.write_text("#!/bin/sh\necho karat\n")
        for target in TARGETS:
            run(DIST, "pack", small, target, out)
        return out

    def test_archives_checksums_formula_and_flake(self):
        out = self.archives()
        run(DIST, "checksums", out)
        run("sha256sum", "--check", "--strict", "SHA256SUMS", folder=out)
        self.assertEqual(len((out / "SHA256SUMS").read_text().splitlines()), len(TARGETS) + 1)
        again = self.folder / "again"
        run(DIST, "pack", self.folder / "small", LINUX, again)
        name = f"karat-{version()}-{LINUX}.tar.gz"
        digest = lambda path: hashlib.sha256(path.read_bytes()).hexdigest()
        self.assertEqual(digest(out / name), digest(again / name), "the same inputs, the same bytes")
        with tarfile.open(out / name) as packed:
            self.assertEqual(packed.getmember(f"karat-{version()}-{LINUX}/karat").mode, 0o755)
        run(DIST, "templates", out, "https://example.com/karat")
        formula, flake = (out / "karat.rb").read_text(), (out / "flake.nix").read_text()
        for text in (formula, flake):
            self.assertNotIn("@SHA256", text)
            self.assertIn(digest(out / name), text)
        script = "import {loadPrism} from '@ruby/prism'; import {readFileSync} from 'node:fs'; " \
            "const found = (await loadPrism())(readFileSync(process.argv[1], 'utf8')); " \
            "console.log(JSON.stringify(found.errors.map((one) => one.message)))"
        said = run("node", "--input-type=module", "-e", script, out / "karat.rb", folder=WORK).stdout
        self.assertEqual(json.loads(said.splitlines()[-1]), [])
        import tree_sitter
        import tree_sitter_nix
        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_nix.language()))
        self.assertFalse(parser.parse(flake.encode()).root_node.has_error)
        self.assertTrue(parser.parse(b"{ a = ").root_node.has_error, "the parser finds errors")

    def test_the_bill_of_materials(self):
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator

        run(DIST, "sbom", LINUX, self.folder)
        text = (self.folder / f"karat-{version()}-{LINUX}.cdx.json").read_text()
        self.assertIsNone(JsonStrictValidator(SchemaVersion.V1_5).validate_str(text))
        parts = json.loads(text)["components"]
        self.assertGreater(len(parts), 200)
        names = {part["name"] for part in parts}
        self.assertIn("tokio", names)
        self.assertNotIn("insta", names, "what only tests use is not in the program")
        for part in parts:
            self.assertTrue(part.get("licenses"), part)
            self.assertTrue(part.get("hashes") or part["name"].startswith(("karat-", "trec")), part)
        print(f"the bill of materials has {len(parts)} components")

    def test_a_release_that_does_not_fit_together_is_refused(self):
        copy = self.folder / "copy"
        (copy / "scripts").mkdir(parents=True)
        shutil.copy(DIST, copy / "scripts/dist")
        for name in ["Cargo.lock", "CHANGELOG.md", "Cargo.toml"]:
            shutil.copy(ROOT / name, copy / name)
        def check(tag, code):
            return run(copy / "scripts/dist", "check", tag, code=code)
        tag = f"v{version()}"
        log = copy / "CHANGELOG.md"
        manifest = copy / "Cargo.toml"
        self.assertIn("tagged", check("v99.0.0", 1).stderr)
        text = manifest.read_text()
        if "repository =" not in text:
            self.assertIn("repository", check(tag, 1).stderr)
            manifest.write_text(text.replace("[workspace.package]\n", '[workspace.package]\nrepository = "https://example.com/karat"\n'))
        log.write_text("# Changelog\n\n## Unreleased\n\n- Something.\n")
        self.assertIn("no section", check(tag, 1).stderr)
        log.write_text(f"# Changelog\n\n## {version()} (2026-11-20)\n\n- First.\n\n## 0.0.9 (2026-01-01)\n\n- Older.\n")
        check(tag, 0)
        self.assertEqual(run(copy / "scripts/dist", "notes", tag).stdout, "- First.\n")
        text = manifest.read_text()
        manifest.write_text(text.replace('crates/trec", version = "', 'crates/trec", version = "7.'))
        self.assertIn("trec", check(tag, 1).stderr)
        manifest.write_text(text)
        lock = copy / "Cargo.lock"
        lock.write_text(lock.read_text().replace(f'name = "karat"\nversion = "{version()}"', 'name = "karat"\nversion = "0.0.1"'))
        self.assertIn("Cargo.lock", check(tag, 1).stderr)

    def test_the_crates_can_be_packaged(self):
        self.addCleanup(shutil.rmtree, ROOT / "crates/karat/bundled", ignore_errors=True)
        run(DIST, "crate")
        words = ["cargo", "package", "-p", "karat", "--list", "--allow-dirty", "--locked"]
        listed = run(*words, folder=ROOT).stdout.splitlines()
        for name in ["bundled/karat.toml", "bundled/ci/gitlab.yml", "README.md", "Cargo.lock"]:
            self.assertIn(name, listed)
        self.assertTrue(any(name.startswith("bundled/datasets/") for name in listed))
        self.assertFalse(any(name.startswith("bundled/datasets/threats/v3") for name in listed))


class Workflows(Scratch):
    def test_no_high_findings(self):
        for path in [ROOT / "action.yml", ROOT / ".github/workflows/dist.yml", *self.written(), *self.recipes()]:
            with self.subTest(path.name):
                run(program("zizmor"), "--offline", "--min-severity", "high", "--no-progress", path)

    def test_actionlint(self):
        paths = [ROOT / ".github/workflows/dist.yml", *self.written(), *self.recipes()]
        run(WORK / "actionlint", "-no-color", "-shellcheck=", "-pyflakes=", *paths)
        bad = self.folder / "bad.yml"
        bad.write_text(paths[0].read_text().replace("matrix.target }}", "matrix.targt }}", 1))
        self.assertIn("targt", run(WORK / "actionlint", "-no-color", bad, code=1).stdout)

    def test_schemas(self):
        run(program("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", ROOT / ".github/workflows/dist.yml")

    def test_pins(self):
        run(ROOT / "scripts/pins")
        for line in ["actions/checkout@v4", "actions/checkout@34e114876b0b11c390a56381ad16ebd13914f8d5", "a/b@main # v1"]:
            bad = self.folder / "bad.yml"
            bad.write_text(f"steps:\n  - uses: {line}\n")
            self.assertIn("not pinned", run(ROOT / "scripts/pins", bad, code=1).stderr)

    def written(self):
        """The workflows that `karat init` writes."""
        for user in ["server", "proxy"]:
            folder = self.folder / user
            if not folder.exists():
                run(KARAT, "init", folder, "--for", user, "--ci", "github")
            yield folder / ".github/workflows/karat.yml"

    def recipes(self):
        """The workflows of the guide."""
        found = re.findall(r"```yaml\n# \.github/workflows/karat.yml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.S)
        self.assertGreaterEqual(len(found), 6)
        for number, text in enumerate(found):
            folder = self.folder / f"recipe{number}"
            folder.mkdir(exist_ok=True)
            (folder / "karat.yml").write_text(text)
            yield folder / "karat.yml"


class Platforms(Scratch):
    def test_what_only_some_systems_have_is_in_one_module(self):
        run(ROOT / "scripts/platform")
        for line in [
            "use std::os::unix::fs::symlink;",
            "let id = rustix::process::getpid();",
            "use tokio::signal::unix::signal;",
            'std::fs::read_to_string("/proc/self/status")',
            'Path::new("/dev/stdin")',
        ]:
            planted = self.folder / "planted.rs"
            planted.write_text(f"fn f() {{\n    {line}\n}}\n\n#[cfg(test)]\nmod tests {{}}\n")
            self.assertIn("planted.rs:2:", run(ROOT / "scripts/platform", planted, code=1).stderr)
            planted.write_text(f"// {line}\n#[cfg(test)]\nmod tests {{\n    {line}\n}}\n")
            run(ROOT / "scripts/platform", planted)

    def test_every_dependency_has_every_target(self):
        said = run(ROOT / "scripts/targets").stdout
        for target in TARGETS:
            self.assertIn(target, said)


class Docker(Scratch):
    def test_the_files_name_what_exists(self):
        for name in ["Dockerfile", "Dockerfile.release"]:
            text = (ROOT / "packages/docker" / name).read_text()
            self.assertRegex(text, r"(?m)^FROM ")
            for source in re.findall(r"(?m)^COPY (?!--from)(.+) \S+$", text):
                for one in source.split():
                    self.assertTrue(one == "karat" or (ROOT / one).exists(), f"{name}: {one}")

    def test_everything_that_is_embedded_is_in_the_image_that_builds(self):
        script = (ROOT / "crates/karat/build.rs").read_text()
        embedded = re.findall(r'"([^"]+)"', re.search(r"for path in \[(.+?)\]", script)[1])
        self.assertIn("ci/gitlab.yml", embedded)
        folder = ROOT / "packages/docker"
        copied = re.findall(r"(?m)^COPY (?!--from)(.+) \S+$", (folder / "Dockerfile").read_text())
        copied = [one for line in copied for one in line.split()]
        kept = re.findall(r"(?m)^!(.+)$", (folder / "Dockerfile.dockerignore").read_text())
        for name in [*embedded, "Cargo.toml", "Cargo.lock", "crates"]:
            self.assertIn(name, copied)
            self.assertIn(name, kept)

    def test_the_image_of_the_program_is_built_and_runs(self):
        self.assertEqual(os.geteuid(), 0, "only root can start an engine")
        host = f"unix://{self.folder}/docker.sock"
        log = open(self.folder / "log", "w")
        self.addCleanup(log.close)
        places = [f"--{name}={self.folder}/{name}" for name in ["data-root", "exec-root", "pidfile"]]
        engine = subprocess.Popen(["dockerd", *places, "-H", host, "--bridge=none", "--iptables=false"], stderr=log)
        self.addCleanup(engine.wait, 60)
        self.addCleanup(engine.terminate)
        docker = lambda *words, code=0: run("docker", *words, env={"DOCKER_HOST": host, "DOCKER_BUILDKIT": "0"}, code=code)
        for _ in range(600):
            if docker("version", code=None).returncode == 0:
                break
            time.sleep(0.1)
        context = self.folder / "context"
        context.mkdir()
        shutil.copy(STATIC, context / "karat")
        # No registry is asked: the program needs nothing, so the image has nothing else.
        docker("build", "--quiet", "--build-arg", "BASE=scratch", "-f", ROOT / "packages/docker/Dockerfile.release", "-t",
               "karat", context)
        project = self.folder / "project"
        run(KARAT, "init", project, "--for", "proxy", "--ci", "none")
        # The user in the image is not the owner of the project.
        run("chmod", "-R", "a+rwX", project)
        mounted = ["run", "--rm", "--network=none", "-v", f"{project}:/project", "karat"]
        self.assertIn(version(), docker(*mounted, "--version").stdout)
        self.assertIn("1 entry passed", docker(*mounted).stdout)
        self.assertTrue((project / "karat-report/report.html").is_file())
        print(f"the image has {int(docker('image', 'inspect', '--format', '{{.Size}}', 'karat').stdout) / 1e6:.1f} MB")


if __name__ == "__main__":
    unittest.main()
