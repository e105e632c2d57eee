"""The provider `kubernetes`: the official client library, and a server that checks pods by Kubernetes' schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("kubernetes", reason="needs the extra kubernetes of scaler-worker")
pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")

from tests.worker.autoscaler.kubernetes_server import PodServer, pod_server

from scaler_worker.autoscaler.kubernetes_pods import KubernetesProvider
from scaler_worker.autoscaler.pool_settings import parse_pool, parse_pool_table
from scaler_worker.autoscaler.providers import HostCommand, ProviderError

ADDRESS = "tcp://10.0.0.1:2345"
POOL = "name=pods provider=kubernetes image=registry/workers:1 workers=4 most=9 retire_seconds=120 capabilities=gpu:1"

pytestmark = pytest.mark.main_environment


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PodServer]:
    with pod_server() as running:
        configuration = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me", "namespace": "batch"}}],
            "clusters": [{"name": "here", "cluster": {"server": running.url}}],
            "users": [{"name": "me", "user": {"token": "secret-token"}}],
        }
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(configuration))
        monkeypatch.setenv("KUBECONFIG", str(file))
        # The library reads the variable when it is imported.
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
        yield running


def provider(text: str = POOL, seconds: float = 10.0) -> KubernetesProvider:
    return KubernetesProvider(HostCommand(parse_pool(text), ADDRESS, "/keys"), seconds)


def test_pods_come_and_go(server: PodServer) -> None:
    pods = provider()
    assert pods.host_names() == set()
    assert pods.start(["pods-0-abc123", "pods-1-abc123"]) == {}
    assert pods.host_names() == {"pods-0-abc123", "pods-1-abc123"}
    pod = server.pods["pods-0-abc123"]
    (container,) = pod["spec"]["containers"]
    assert container["command"] == ["scaler_cluster"] and container["resources"]["requests"] == {"cpu": "4"}
    assert " ".join(container["args"]) == (
        f"--agent-name pods-0-abc123 {ADDRESS} -n 4 --retire-seconds 120 --capabilities gpu=1 --keys /keys"
    )
    assert pod["spec"]["restartPolicy"] == "Never" and pod["spec"]["terminationGracePeriodSeconds"] == 130
    assert server.tokens == {"Bearer secret-token"}
    pods.drain(["pods-0-abc123"])
    pods.kill(["pods-1-abc123", "pods-7-gone00"])  # one that is gone is no error
    assert server.deleted == [("pods-0-abc123", 130), ("pods-1-abc123", 0)]
    assert pods.host_names() == set()


def test_ended_pods_are_no_hosts(server: PodServer) -> None:
    pods = provider()
    pods.start(["pods-0-abc123", "pods-1-abc123"])
    server.pods["pods-0-abc123"]["status"]["phase"] = "Failed"
    assert pods.host_names() == {"pods-1-abc123"}


def test_template(server: PodServer, tmp_path: Path) -> None:
    template = tmp_path / "pod.yaml"
    template.write_text(
        "kind: Deployment\nspec: {template: {metadata: {labels: {team: a}}, spec: {nodeSelector: {size: large}, "
        "containers: [{name: w, image: i, command: [run], args: [first]}]}}}\n"
    )
    table = {"name": "pods", "provider": "kubernetes", "template": str(template), "most": 2, "time_limit_seconds": 600}
    pods = KubernetesProvider(HostCommand(parse_pool_table(table), ADDRESS, ""), 10.0)
    pods.start(["pods-0-abc123"])
    pod = server.pods["pods-0-abc123"]
    assert pod["metadata"]["labels"] == {"team": "a", "scaler/pool": "pods"}
    assert pod["spec"]["nodeSelector"] == {"size": "large"} and pod["spec"]["activeDeadlineSeconds"] == 600
    (container,) = pod["spec"]["containers"]
    assert container["command"] == ["run"] and container["args"][:2] == ["first", "--agent-name"]


def test_failures_are_one_line(server: PodServer, tmp_path: Path) -> None:
    pods = provider()
    server.fails_with = 403
    with pytest.raises(ProviderError, match="Kubernetes: 403 .*the server fails"):
        pods.start(["pods-0-abc123"])
    server.fails_with = 0
    server.hangs.clear()
    with pytest.raises(ProviderError, match="Kubernetes: .*[Tt]imed out"):
        provider(seconds=0.3).host_names()
    server.hangs.set()
    (tmp_path / "bad.yaml").write_text("spec: {containers: []}")
    with pytest.raises(ProviderError, match="spec.containers is missing"):
        provider(f"name=pods provider=kubernetes template={tmp_path}/bad.yaml most=1")
    with pytest.raises(ProviderError, match="cannot be read: No such file"):
        provider(f"name=pods provider=kubernetes template={tmp_path}/none.yaml most=1")


def test_no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    with pytest.raises(ProviderError, match="no access to Kubernetes: "):
        provider()
