# syntax=docker/dockerfile:1
# The container image; docs/install.md describes it.

# The version is that of rust-toolchain.toml. A test compares them.
FROM rust:1.95.0-bookworm AS build
# The toolchain of the image is used as it is: rustup does not add the components of rust-toolchain.toml.
ENV RUSTUP_TOOLCHAIN=1.95.0 CARGO_TERM_COLOR=never
# `release` builds in minutes; `dist` is slower to build and needs about a quarter fewer instructions per response.
ARG PROFILE=dist
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --profile "$PROFILE" --package tollgate --bin tollgate \
    && install -D "target/$PROFILE/tollgate" /image/usr/local/bin/tollgate
# The runtime is the binary, the shared libraries that it names, certificates and an unprivileged user: no shell.
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN ldd /image/usr/local/bin/tollgate | grep --only-matching '/[^ ]*' \
    | while read -r library; do install -D "$library" "/image$library"; done \
    && install -D --mode=0644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
    && echo 'hosts: files dns' > /image/etc/nsswitch.conf \
    && echo 'tollgate:x:65532:65532::/var/lib/tollgate:/sbin/nologin' > /image/etc/passwd \
    && echo 'tollgate:x:65532:' > /image/etc/group \
    && install -D --mode=0644 --target-directory=/image/usr/share/doc/tollgate LICENSE LICENSE-APACHE LICENSE-MIT \
    && install -D --mode=0644 deploy/container/tollgate.toml /image/etc/tollgate/tollgate.toml \
    # For the image's user, and for any user of group 0, which some platforms choose.
    && install -d --mode=0770 --owner=65532 --group=0 /data

FROM scratch
COPY --from=build /image /
COPY --from=build --chown=65532:0 /data /var/lib/tollgate
ENV PATH=/usr/local/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
# Default paths are relative to it. Everything that is written is below it; the rest may be read-only.
WORKDIR /var/lib/tollgate
VOLUME /var/lib/tollgate
EXPOSE 8080 9464
# The server drains; `docker stop` must wait for it: --time 120.
STOPSIGNAL SIGTERM
# Exits with 1 until the server is ready, and while it drains.
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=3 \
    CMD ["tollgate", "status", "--config", "/etc/tollgate/tollgate.toml"]
ENTRYPOINT ["tollgate"]
CMD ["serve", "--config", "/etc/tollgate/tollgate.toml"]
