# The image of the scheduler, with the one file that `make package` builds, which contains PyPy.
#
#   docker build -f packaging/container/scheduler.Dockerfile -t scaler-scheduler:0.1.0 packaging/dist
FROM debian:bookworm-slim
COPY --chmod=755 scaler_scheduler /usr/local/bin/scaler_scheduler
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin scaler \
    && install -d -o scaler -m 700 /var/cache/scaler
USER 10001:10001
# Mount at /keys the folder that `scaler_scheduler keygen` has made. This user must be able to read it.
ENV CACHE_DIRECTORY=/var/cache/scaler SCALER_KEYS=/keys
# Unpack the file now, so that containers start at once and need no writable folder.
RUN scaler_scheduler --version
EXPOSE 2345
STOPSIGNAL SIGTERM
ENTRYPOINT ["scaler_scheduler"]
CMD ["tcp://0.0.0.0:2345"]
