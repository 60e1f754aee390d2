# docs/docker.md says how to start the container: the sandbox needs three settings that docker-compose.yml makes.

FROM rust:1.95-bookworm AS build
WORKDIR /src
# Without rust-toolchain.toml: the image has the one toolchain.
COPY . .
# Incremental files and downloads stay in the builder's cache, the program is copied out of it.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    SQLX_OFFLINE=true cargo build --release --locked && \
    install -D -m 755 target/release/omniforge /out/omniforge

FROM python:3.11-slim-bookworm AS uv
COPY tests/clients/requirements.txt /tmp/requirements.txt
RUN grep -o '^uv==[0-9.]*' /tmp/requirements.txt > /tmp/uv.txt && \
    pip install --no-cache-dir --target /out --requirement /tmp/uv.txt

FROM node:22-bookworm-slim
RUN apt-get update && \
    apt-get install -y --no-install-recommends bash ca-certificates python3 && \
    rm -rf /var/lib/apt/lists/* && \
    groupadd --gid 10001 omniforge && \
    useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin omniforge && \
    install -d -o omniforge -g omniforge -m 700 /data
COPY --from=build /out/omniforge /usr/local/bin/omniforge
COPY --from=uv /out/bin/uv /usr/local/bin/uv
COPY LICENSE NOTICE THIRD_PARTY.md /usr/share/doc/omniforge/

USER omniforge
ENV OMNIFORGE_LISTEN=0.0.0.0:8787 \
    OMNIFORGE_DATA_DIR=/data
VOLUME /data
EXPOSE 8787
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/healthz', timeout=4)"]
ENTRYPOINT ["omniforge"]
CMD ["serve"]
