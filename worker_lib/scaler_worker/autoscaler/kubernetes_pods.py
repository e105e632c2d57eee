"""The provider `kubernetes`: each host is a pod, by the official client library (scaler-worker[kubernetes])."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from scaler_client.autoscale.pools import parse_host_name

from .providers import MAX_OUTPUT_CHARACTERS, HostCommand, ProviderError, for_each, raise_first

POOL_LABEL = "scaler/pool"
NOT_FOUND, CONFLICT = 404, 409
INSTALL_HINT = "the provider kubernetes needs a library: pip install 'scaler-worker[kubernetes]'"


class KubernetesProvider:
    """Creates, lists and deletes pods.

    Args:
        command: makes the command of a host.
        seconds: the longest request.

    Raises:
        ProviderError: the library, its configuration or the template is missing or wrong.
    """

    def __init__(self, command: HostCommand, seconds: float) -> None:
        try:
            import kubernetes
        except ImportError:
            raise ProviderError(INSTALL_HINT) from None
        self._command = command
        self._seconds = seconds
        self._template = _read_template(command.settings.template) if command.settings.template else None
        self._errors: tuple[type[Exception], ...] = (
            kubernetes.client.ApiException,
            kubernetes.config.ConfigException,
            OSError,
        )
        from urllib3.exceptions import HTTPError

        self._errors += (HTTPError,)
        try:
            try:
                kubernetes.config.load_incluster_config()
            except kubernetes.config.ConfigException:
                kubernetes.config.load_kube_config()
        except (kubernetes.config.ConfigException, OSError) as error:
            raise ProviderError(f"no access to Kubernetes: {_on_one_line(error)}") from None
        configuration = kubernetes.client.Configuration.get_default_copy()
        configuration.retries = False
        self._api = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))
        self._namespace = command.settings.namespace or _current_namespace(kubernetes.config)

    def start(self, names: Sequence[str]) -> dict[str, str]:
        def start_one(name: str) -> None:
            self._call(self._api.create_namespaced_pod, self._namespace, self.pod(name))

        failed = for_each(names, start_one)
        if len(failed) == len(names):
            raise_first(failed)
        return failed

    def drain(self, names: Sequence[str]) -> None:
        self._delete(names, round(self._command.pool.retire_seconds) + 10)

    def kill(self, names: Sequence[str]) -> None:
        self._delete(names, 0)

    def host_names(self) -> set[str]:
        selector = f"{POOL_LABEL}={self._command.pool.name}"
        found = self._call(self._api.list_namespaced_pod, self._namespace, label_selector=selector)
        return {
            pod.metadata.name
            for pod in found.items
            if parse_host_name(pod.metadata.name) is not None and pod.status.phase not in ("Succeeded", "Failed")
        }

    def pod(self, name: str) -> dict[str, Any]:
        """Return the pod of a host."""
        command = self._command
        pod: dict[str, Any] = copy.deepcopy(self._template) if self._template is not None else _plain_pod(command)
        metadata = pod.setdefault("metadata", {})
        metadata["name"] = name
        metadata.pop("generateName", None)
        metadata.setdefault("labels", {})[POOL_LABEL] = command.pool.name
        spec = pod["spec"]
        spec["restartPolicy"] = "Never"  # an agent that has ended is replaced if it is still wanted
        spec["terminationGracePeriodSeconds"] = round(command.pool.retire_seconds) + 10
        if command.pool.time_limit_seconds:
            spec["activeDeadlineSeconds"] = max(1, round(command.pool.time_limit_seconds))
        program = list(command.settings.program)
        arguments = command.arguments(name)[len(program) :]
        container = spec["containers"][0]
        container.setdefault("command", program)
        container["args"] = [*container.get("args", ()), *arguments]
        return pod

    def _delete(self, names: Sequence[str], grace_seconds: int) -> None:
        def delete_one(name: str) -> None:
            self._call(self._api.delete_namespaced_pod, name, self._namespace, grace_period_seconds=grace_seconds)

        raise_first(for_each(names, delete_one))

    def _call(self, call: Any, *arguments: Any, **further: Any) -> Any:
        try:
            return call(*arguments, _request_timeout=self._seconds, **further)
        except self._errors as error:
            status = getattr(error, "status", 0)
            if status == NOT_FOUND and call == self._api.delete_namespaced_pod:
                return None
            if status == CONFLICT and call == self._api.create_namespaced_pod:
                return None  # an earlier request was answered too late
            raise ProviderError(f"Kubernetes: {_on_one_line(error)}") from None


def _plain_pod(command: HostCommand) -> dict[str, Any]:
    """A pod of the image, which asks for a core a worker."""
    container = {
        "name": "workers",
        "image": command.settings.image,
        "resources": {"requests": {"cpu": str(command.pool.workers)}},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": [container]}}


def _read_template(path: str) -> dict[str, Any]:
    """Read a Pod, or the pod in a Deployment or Job.

    Raises:
        ProviderError: the file cannot be read or has no pod.
    """
    import yaml  # a dependency of the client library

    try:
        with open(path, encoding="utf-8") as file:
            read = yaml.safe_load(file)
    except OSError as error:
        raise ProviderError(f"template {path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ProviderError(f"template {path}: {_on_one_line(error)}") from None
    if isinstance(read, dict) and isinstance(read.get("spec"), dict) and "template" in read["spec"]:
        read = read["spec"]["template"]
    spec = read.get("spec") if isinstance(read, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        raise ProviderError(f"template {path} has no pod with a container: spec.containers is missing")
    assert isinstance(read, dict)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": read.get("metadata") or {}, "spec": spec}


def _current_namespace(config: Any) -> str:
    """The namespace of the configuration; `default` if it has none."""
    try:
        with open("/var/run/secrets/kubernetes.io/serviceaccount/namespace", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        pass
    try:
        _, active = config.list_kube_config_contexts()
        return str(active["context"].get("namespace", "default"))
    except (config.ConfigException, OSError, KeyError, TypeError):
        return "default"


def _on_one_line(error: object) -> str:
    body: Mapping[str, Any] | str = getattr(error, "body", "") or ""
    reason = getattr(error, "reason", "") if body else ""
    text = f"{getattr(error, 'status', '')} {reason} {body}" if body else str(error)
    return " ".join(text.split())[:MAX_OUTPUT_CHARACTERS]
