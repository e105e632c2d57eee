# The image of the workers, with the wheels that `make package` builds. It needs the CPython minor version of the clients,
# and the packages that the tasks import.
#
#   docker build -f packaging/container/workers.Dockerfile -t scaler-workers:0.1.0 packaging/dist
#
# Add packages: --build-arg PACKAGES="numpy pandas". Use another Python: --build-arg PYTHON=3.12.
ARG PYTHON=3.11
FROM python:${PYTHON}-slim
ARG PACKAGES=""
COPY scaler_client-*.whl scaler_worker-*.whl /wheels/
RUN pip install --no-cache-dir /wheels/*.whl ${PACKAGES} \
    && rm -rf /wheels \
    && useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin scaler
USER 10001:10001
STOPSIGNAL SIGTERM
ENTRYPOINT ["scaler_cluster"]
