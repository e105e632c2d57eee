# The exporter's image: the scheduler's metrics for Prometheus. It runs beside the scheduler, in the same pod.
#
#   docker build -f packaging/container/exporter.Dockerfile -t scaler-exporter:0.1.0 .
FROM python:3.11-slim
COPY client_lib /source/client_lib
RUN pip install --no-cache-dir "/source/client_lib[exporter]" \
    && rm -rf /source \
    && useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin scaler
USER 10001:10001
EXPOSE 9464
STOPSIGNAL SIGTERM
ENTRYPOINT ["scaler_exporter"]
