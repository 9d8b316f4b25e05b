"""What is to run elsewhere: images, manifests, a unit, and the programs in them, which run here.

Tests have no container engine and no cluster: no image is built, and no manifest applied.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.metrics.scraping import PATIENCE_S, await_ready, get, say, scrape

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "examples" / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
RECIPES = sorted(DEPLOY.glob("Containerfile*"))
TOKEN = "a token of tests, of 32 letters"

# The programs.


@dataclass
class Running:
    """A service that runs, and what its requests need."""

    process: subprocess.Popen[str]
    url: str = ""
    metrics: str = ""

    def ask(self, path: str, sales: Any = None, token: str = TOKEN) -> tuple[int, Any]:
        """(status, answer)."""
        request = urllib.request.Request(self.url + path)
        request.add_header("Authorization", f"Bearer {token}")
        if sales is not None:
            request.data = json.dumps(sales).encode()
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, json.load(refusal)


@contextmanager
def running(program: str, folder: Path, **environment: str) -> Iterator[Running]:
    """A program of the images as a process, until the end of the block, which sends it SIGTERM."""
    (folder / "token").write_text(TOKEN + "\n")
    given = {
        "POINTSTAMP_TOKEN_FILE": str(folder / "token"),
        "POINTSTAMP_CHECKPOINT": str(folder / "checkpoint"),
        "POINTSTAMP_LISTEN": "127.0.0.1:0",
        "POINTSTAMP_METRICS": "127.0.0.1:0",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        **environment,
    }
    with subprocess.Popen(
        [sys.executable, str(DEPLOY / program)],
        env={**os.environ, **given},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        limit = threading.Timer(4 * PATIENCE_S, process.kill)
        limit.start()
        try:
            assert process.stderr is not None
            try:
                yield _said(process)
            except BaseException as error:
                process.kill()
                error.add_note(f"the program said: {process.stderr.read()}")
                raise
            process.send_signal(signal.SIGTERM)
            rest = process.stderr.read()
            assert process.wait(PATIENCE_S) == 0, rest
            assert "all that was taken is complete" in rest
        finally:
            process.kill()
            limit.cancel()
            limit.join()


def _said(process: subprocess.Popen[str]) -> Running:
    """Where it says that it is."""
    found, lines = Running(process), []
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        if (match := re.search(r"metrics at (http://\S+)/metrics", line)) is not None:
            found.metrics = match[1]
        if (match := re.search(r"taken at (http://\S+)/sales", line)) is not None:
            found.url = match[1]
            return found
    raise AssertionError("".join(lines))


def check_service(
    program: str, folder: Path, afterwards: str | None = None, **environment: str
) -> None:
    """Probes, requests, what is refused, and that it goes on where it was ended.

    Or that another program does, which is named.
    """
    with running(program, folder, **environment) as service:
        await_ready(service.metrics)
        assert say(service.metrics, "health")["state"] == "running"
        assert service.ask("/totals") == (200, {"epoch": -1, "totals": []})
        sold = [{"shop": 1, "cents": 250}, {"shop": 2, "cents": 99}, {"shop": 1, "cents": 50}]
        assert service.ask("/sales", sold) == (200, {"epoch": 0})
        assert service.ask("/sales", [{"shop": 2, "cents": 1}]) == (200, {"epoch": 1})
        totals = [
            {"shop": 1, "sales": 2, "cents": 300},
            {"shop": 2, "sales": 2, "cents": 100},
        ]
        _, answer = service.ask("/totals")
        assert sorted(answer["totals"], key=lambda row: row["shop"]) == totals
        assert scrape(service.metrics).sum("input_epoch", worker="0") == 2
        for path, sales, token, expected in (
            ("/totals", None, "another token, 32 letters long.", 401),
            ("/sales", sold, "", 401),
            ("/sales", {"shop": 1}, TOKEN, 400),
            ("/sales", [{"shop": 1, "cents": "many"}], TOKEN, 400),
            ("/sales", [{"shop": 1}], TOKEN, 400),
            ("/elsewhere", None, TOKEN, 404),
        ):
            status, answer = service.ask(path, sales, token)
            assert (status, bool(answer["error"])) == (expected, True), (path, answer)
        assert service.ask("/totals")[1]["epoch"] == 1
    with running(afterwards or program, folder, **environment) as service:
        await_ready(service.metrics)
        _, answer = service.ask("/totals")
        assert sorted(answer["totals"], key=lambda row: row["shop"]) == totals
        assert service.ask("/sales", [{"shop": 3, "cents": 5}])[1]["epoch"] >= 2
        assert {"shop": 3, "sales": 1, "cents": 5} in service.ask("/totals")[1]["totals"]


def test_the_service_without_spark_runs_and_goes_on(tmp_path: Path) -> None:
    check_service("sales.py", tmp_path, POINTSTAMP_WORKERS="2")


@pytest.mark.spark
@pytest.mark.new_interpreters  # as it is started elsewhere
@pytest.mark.xdist_group("own spark")
def test_the_service_on_spark_runs_and_goes_on_without(tmp_path: Path) -> None:
    check_service("sales_on_spark.py", tmp_path, "sales.py", POINTSTAMP_WORKERS="1")


def test_a_service_whose_worker_is_killed_is_healthy_and_not_ready_meanwhile(
    tmp_path: Path,
) -> None:
    with running("sales.py", tmp_path, POINTSTAMP_WORKERS="2") as service:
        await_ready(service.metrics)
        assert service.ask("/sales", [{"shop": 1, "cents": 1}]) == (200, {"epoch": 0})
        processes = scrape(service.metrics).all("process_resident_memory_bytes")
        os.kill(int(processes[0].labels["process"]), signal.SIGKILL)
        until = time.monotonic() + PATIENCE_S
        while not scrape(service.metrics).all("restarts_total") or (
            scrape(service.metrics).sum("restarts_total") < 1
        ):
            assert get(f"{service.metrics}/health")[0] == 200
            assert time.monotonic() < until
        await_ready(service.metrics)
        assert service.ask("/totals")[1]["totals"] == [{"shop": 1, "sales": 1, "cents": 1}]


@pytest.mark.parametrize("missing", ["POINTSTAMP_TOKEN_FILE", "POINTSTAMP_CHECKPOINT"])
def test_what_is_missing_in_the_environment_is_said(tmp_path: Path, missing: str) -> None:
    environment = {**os.environ, "POINTSTAMP_CHECKPOINT": str(tmp_path)}
    environment["POINTSTAMP_TOKEN_FILE"] = str(tmp_path / "token")
    del environment[missing]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    ran = subprocess.run(
        [sys.executable, str(DEPLOY / "sales.py")], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert f"{missing} must be in the environment" in ran.stderr


# Manifests.


def objects(manifest: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(manifest.read_text()) if each is not None]


@pytest.mark.parametrize("version", ["1.31", "1.37"])
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_manifests_are_what_kubernetes_takes(manifest: Path, version: str) -> None:
    for each in objects(manifest):
        kubernetes_validate.validate(each, version, strict=True)
        if each["kind"] == "ConfigMap":
            pod = yaml.safe_load(each["data"]["executor.yaml"])
            kubernetes_validate.validate(pod, version, strict=True)


def test_a_manifest_that_is_wrong_is_refused() -> None:
    stateful = next(each for each in objects(MANIFESTS[0]) if each["kind"] == "StatefulSet")
    stateful["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="livenessprobe"):
        kubernetes_validate.validate(stateful, "1.31", strict=True)


def by_kind(manifest: Path) -> dict[str, dict[str, Any]]:
    """By kind and name."""
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in objects(manifest)}


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_what_a_manifest_names_is_there(manifest: Path) -> None:
    found = by_kind(manifest)
    stateful = found["StatefulSet/sales"]
    pod = stateful["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert stateful["spec"]["replicas"] == 1  # of a checkpoint
    assert stateful["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert f"Service/{stateful['spec']['serviceName']}" in found
    # Volumes and what they are of.
    volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert volumes.keys() == mounts.keys()
    claim = volumes["checkpoint"]["persistentVolumeClaim"]["claimName"]
    assert f"PersistentVolumeClaim/{claim}" in found
    assert volumes["token"]["secret"]["secretName"] == "sales-token"
    # Probes ask what the endpoint has, at the port that the image says.
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert (ports["http"], ports["metrics"]) == (8080, 9464)
    for probe, path in (("startup", "/health"), ("liveness", "/health"), ("readiness", "/ready")):
        asked = container[f"{probe}Probe"]["httpGet"]
        assert (asked["path"], asked["port"]) == (path, "metrics")
    assert container["resources"]["limits"]["memory"]
    for service in (each for name, each in found.items() if name.startswith("Service/")):
        assert service["spec"]["selector"] == pod["metadata"]["labels"]
        for port in service["spec"]["ports"]:
            assert port.get("targetPort", port["port"]) in {*ports, *ports.values()}
    # The image has its environment: a folder of each is mounted.
    image = environment_of(recipe_of(container["image"]))
    for variable in ("POINTSTAMP_TOKEN_FILE", "POINTSTAMP_CHECKPOINT"):
        assert str(Path(image[variable]).parent) in mounts.values()
    assert image["POINTSTAMP_LISTEN"].endswith(":8080")
    assert image["POINTSTAMP_METRICS"].endswith(":9464")
    names = {each["name"] for each in container["env"]} | image.keys()
    program = (DEPLOY / "sales.py").read_text() + (DEPLOY / "sales_on_spark.py").read_text()
    ours = {name for name in names if name.startswith("POINTSTAMP_")}
    assert {name for name in ours if name not in program} == set()


def test_the_settings_of_spark_fit_the_manifest() -> None:
    found = by_kind(DEPLOY / "kubernetes" / "sales-on-spark.yaml")
    lines = found["ConfigMap/sales-spark"]["data"]["spark-defaults.conf"].splitlines()
    settings = dict(line.split(None, 1) for line in lines if not line.startswith("#"))
    stateful = found["StatefulSet/sales"]
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    ports = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
    namespaces = {each["metadata"]["namespace"] for each in found.values()}
    assert namespaces == {settings["spark.kubernetes.namespace"]}
    assert settings["spark.kubernetes.container.image"] == container["image"]
    assert settings["spark.kubernetes.driver.pod.name"] == "sales-0"
    assert settings["spark.driver.host"] == "sales-driver.sales.svc"
    headless = found["Service/sales-driver"]["spec"]
    assert (headless["clusterIP"], headless["publishNotReadyAddresses"]) == ("None", True)
    assert settings["spark.driver.port"] == ports["driver"]
    assert settings["spark.driver.blockManager.port"] == ports["blocks"]
    slots = int(settings["spark.executor.instances"]) * int(settings["spark.executor.cores"])
    (workers,) = (each for each in container["env"] if each["name"] == "POINTSTAMP_WORKERS")
    assert slots > int(workers["value"])
    account = settings["spark.kubernetes.authenticate.driver.serviceAccountName"]
    assert f"ServiceAccount/{account}" in found
    assert stateful["spec"]["template"]["spec"]["serviceAccountName"] == account
    volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.checkpoint"
    claim = found[f"PersistentVolumeClaim/{settings[f'{volume}.options.claimName']}"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert settings[f"{volume}.mount.path"] == "/checkpoint"
    template = Path(settings["spark.kubernetes.executor.podTemplateFile"])
    assert template.name in found["ConfigMap/sales-spark"]["data"]
    image = environment_of(recipe_of(container["image"]))
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounts["spark"] == str(template.parent) == image["SPARK_CONF_DIR"]


# Recipes of images.


def recipe_of(image: str) -> Path:
    return DEPLOY / {"sales:1": "Containerfile", "sales-on-spark:1": "Containerfile.spark"}[image]


def instructions(recipe: Path) -> list[tuple[str, str]]:
    """(instruction, the rest), with continued lines put together."""
    text = re.sub(r"^\s*#.*\n", "", recipe.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]  # type: ignore[misc]


def environment_of(recipe: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for instruction, rest in instructions(recipe):
        if instruction == "ENV":
            found |= dict(word.split("=", 1) for word in rest.split())
    return found


def is_ignored(path: str) -> bool:
    """Whether .dockerignore leaves a file out, the last line that matches deciding."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        parents = [str(each) for each in [Path(path), *Path(path).parents]]
        if line and not line.startswith("#") and any(fnmatch(each, pattern) for each in parents):
            ignored = not line.startswith("!")
    return ignored


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_copies_what_is_there_and_starts_a_program_of_it(recipe: Path) -> None:
    known = {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "EXPOSE", "CMD"}
    found = instructions(recipe)
    assert {instruction for instruction, _ in found} <= known
    copied: set[str] = set()
    for instruction, rest in found:
        if instruction != "COPY" or rest.startswith("--from="):
            continue
        *sources, target = rest.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert not is_ignored(source), source
            copied.add(target if "." in Path(target).name else f"{target.rstrip('/')}/{source}")
    (command,) = (rest for instruction, rest in found if instruction == "CMD")
    program = json.loads(command)[-1]  # of the form that needs no shell
    assert program.startswith("/opt/sales/")
    name = Path(program).name
    assert any(each.endswith(name) for each in copied)
    assert (DEPLOY / name).exists()
    assert [rest for instruction, rest in found if instruction == "USER"][-1] != "root"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_installs_extras_that_there_are(recipe: Path) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    (named,) = set(re.findall(r"'\.\[([\w,]+)\]'", recipe.read_text()))
    assert {each for each in named.split(",") if each not in extras} == set()
    assert "metrics" in named


def test_the_image_of_spark_has_the_version_that_is_locked() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    (version,) = re.findall(r"^pyspark==(\S+)", lock, re.MULTILINE)
    (base,) = (
        rest for word, rest in instructions(DEPLOY / "Containerfile.spark") if word == "FROM"
    )
    assert base.endswith(f"/spark:{version}")


def test_what_is_built_elsewhere_is_not_sent_to_the_builder() -> None:
    assert is_ignored("build/x")
    assert is_ignored(".venv/bin/python")
    assert is_ignored("pointstamp/progress/subgraph.cpython-311-x86_64-linux-gnu.so")
    assert not is_ignored("pointstamp/progress/subgraph.py")


# The unit.


def test_the_unit_is_what_systemd_takes(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed here, which checks units")
    unit = (DEPLOY / "sales.service").read_text()
    # It looks whether the command is there: the one that would be installed is this Python.
    assert unit.count("/opt/sales/venv/bin/python") == 1
    here = tmp_path / "sales.service"
    here.write_text(unit.replace("/opt/sales/venv/bin/python", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(here)]
    ran = subprocess.run(command, capture_output=True, text=True)
    said = [line for line in ran.stderr.splitlines() if "sales" in line]
    assert (ran.returncode, said) == (0, []), ran.stderr
    here.write_text(here.read_text().replace("Restart=on-failure", "Restart=at-times"))
    wrong = subprocess.run(command, capture_output=True, text=True)
    assert "at-times" in wrong.stderr


def test_the_unit_sets_what_the_program_reads() -> None:
    unit = (DEPLOY / "sales.service").read_text()
    names = set(re.findall(r"^Environment=(\w+)=", unit, re.MULTILINE))
    program = (DEPLOY / "sales.py").read_text()
    assert {name for name in names if name not in program} == set()
    assert {"POINTSTAMP_TOKEN_FILE", "POINTSTAMP_CHECKPOINT"} <= names
