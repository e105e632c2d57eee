# The scheduler's image, of the one file that `make package` builds: it has its PyPy in it.
#
#   docker build -f packaging/container/scheduler.Dockerfile -t scaler-scheduler:0.1.0 packaging/dist
FROM debian:bookworm-slim
COPY --chmod=755 scaler_scheduler /usr/local/bin/scaler_scheduler
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin scaler \
    && install -d -o scaler -m 700 /var/cache/scaler
USER 10001:10001
# To be mounted: the folder that `scaler_scheduler keygen` has made, readable by this user.
ENV CACHE_DIRECTORY=/var/cache/scaler SCALER_KEYS=/keys
# Unpacked now: containers start at once, and need no place to write to.
RUN scaler_scheduler --version
EXPOSE 2345
STOPSIGNAL SIGTERM
ENTRYPOINT ["scaler_scheduler"]
CMD ["tcp://0.0.0.0:2345"]
