"""packaging/kubernetes against Kubernetes' schemas, against each other, and against the options.

The schemas come from the package kubernetes-validate. The manifests are not applied to a cluster.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.system.roots import CHECKOUT

import scaler_client.exporter.config
import scaler_scheduler.config.config
import scaler_worker.config
from scaler_client.commands.command_line import parse_arguments

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate (make test-system)")
yaml = pytest.importorskip("yaml")

FOLDER = CHECKOUT / "packaging" / "kubernetes"
IMAGES = CHECKOUT / "packaging" / "container"
VERSIONS = ("1.25", "1.29", kubernetes_validate.latest_version().rpartition(".")[0])
"""Versions from the oldest that has all features used to the newest with schemas."""

Manifest = dict[str, Any]


def manifests() -> list[Manifest]:
    return [each for path in sorted(FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text())]


def one(kind: str, name: str) -> Manifest:
    (found,) = [each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def container(deployment: str, number: int = 0) -> Manifest:
    found: Manifest = one("Deployment", deployment)["spec"]["template"]["spec"]["containers"][number]
    return found


def labels(deployment: str) -> dict[str, str]:
    found: dict[str, str] = one("Deployment", deployment)["spec"]["template"]["metadata"]["labels"]
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", manifests(), ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_manifest_matches_the_schema(manifest: Manifest, version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_schema_detects_a_misspelt_key() -> None:
    wrong = copy.deepcopy(one("Deployment", "scaler-scheduler"))
    wrong["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_names_and_ports_match() -> None:
    service = one("Service", "scaler-scheduler")["spec"]
    policy = one("NetworkPolicy", "scaler-scheduler")["spec"]
    ports = {port["name"]: port["containerPort"] for port in container("scaler-scheduler")["ports"]}
    assert service["selector"].items() <= labels("scaler-scheduler").items()
    assert policy["podSelector"]["matchLabels"].items() <= labels("scaler-scheduler").items()
    assert policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"].items() <= labels("scaler-workers").items()
    assert container("scaler-scheduler")["args"] == [f"tcp://0.0.0.0:{ports[service['ports'][0]['targetPort']]}"]
    target = one("HorizontalPodAutoscaler", "scaler-workers")["spec"]["scaleTargetRef"]
    assert one(target["kind"], target["name"])["apiVersion"] == target["apiVersion"]


def secrets(deployment: str) -> dict[str, str]:
    """The names of a deployment's secrets by mount path."""
    pod = one("Deployment", deployment)["spec"]["template"]["spec"]
    named = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    mounts = container(deployment)["volumeMounts"]
    return {mount["mountPath"]: named[mount["name"]] for mount in mounts if mount["name"] in named}


@pytest.mark.parametrize("who, secret", [("scheduler", "scaler-scheduler-keys"), ("workers", "scaler-worker-keys")])
def test_deployments_mount_keys(who: str, secret: str) -> None:
    environment = {each["name"]: each.get("value") for each in container(f"scaler-{who}")["env"]}
    assert secrets(f"scaler-{who}") == {environment["SCALER_KEYS"]: secret}
    assert f"kubectl create secret generic {secret} " in (FOLDER / f"{who}.yaml").read_text()


def test_variables_of_the_workers_are_options() -> None:
    environment = {each["name"]: each.get("value", "4") for each in container("scaler-workers")["env"]}
    config = scaler_worker.config.load(parse_arguments(scaler_worker.config.COMMAND, []), environment)
    port = one("Service", "scaler-scheduler")["spec"]["ports"][0]["port"]
    assert str(config.address) == f"tcp://scaler-scheduler:{port}" and config.num_of_workers == 4


def test_exporter_reads_the_scheduler_of_its_pod() -> None:
    scheduler, exporter = container("scaler-scheduler"), container("scaler-scheduler", 1)
    config = scaler_client.exporter.config.load(
        parse_arguments(scaler_client.exporter.config.COMMAND, exporter["args"]), {}
    )
    daemon = scaler_scheduler.config.config.load(
        parse_arguments(scaler_scheduler.config.config.COMMAND, scheduler["args"]), {}
    )
    assert str(config.monitor_address) == str(daemon.monitor_address)
    (volume,) = exporter["volumeMounts"]
    assert volume in scheduler["volumeMounts"] and config.monitor_address.path.startswith(volume["mountPath"] + "/")
    assert [port["containerPort"] for port in exporter["ports"]] == [config.port]
    service, policy = (one(kind, "scaler-scheduler")["spec"] for kind in ("Service", "NetworkPolicy"))
    assert service["ports"][1]["targetPort"] == policy["ingress"][1]["ports"][0]["port"] == exporter["ports"][0]["name"]


def test_each_image_has_a_dockerfile() -> None:
    images = {
        "scheduler": container("scaler-scheduler")["image"],
        "exporter": container("scaler-scheduler", 1)["image"],
        "workers": container("scaler-workers")["image"],
    }
    for name, image in images.items():
        assert f"-t {image} " in (IMAGES / f"{name}.Dockerfile").read_text()
