# The image of the exporter, with the client's wheel that `make package` builds. It exports the scheduler's metrics for
# Prometheus and runs in the same pod as the scheduler.
#
#   docker build -f packaging/container/exporter.Dockerfile -t scaler-exporter:0.1.0 packaging/dist
FROM python:3.11-slim
COPY scaler_client-*.whl /wheels/
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[exporter]" \
    && rm -rf /wheels \
    && useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin scaler
USER 10001:10001
EXPOSE 9464
STOPSIGNAL SIGTERM
ENTRYPOINT ["scaler_exporter"]
