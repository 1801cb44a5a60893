#!/bin/sh
# Makes the user of the node. Nothing is started: a node needs to be told its database first.
set -e
if ! getent passwd go-crontab >/dev/null; then
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers go-crontab.conf
	else
		getent group go-crontab >/dev/null || groupadd --system go-crontab
		useradd --system --gid go-crontab --home-dir /var/lib/go-crontab --no-create-home --shell /usr/sbin/nologin go-crontab
	fi
fi
chown root:go-crontab /etc/go-crontab /etc/go-crontab/serve.env
chmod 0750 /etc/go-crontab
chmod 0640 /etc/go-crontab/serve.env
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# An upgrade: the new program, after a drain. Migrate before, and upgrade one machine at a time: docs/upgrades.md. A node
	# that cannot start is no reason to leave the package half configured.
	if systemctl is-active --quiet go-crontab; then
		systemctl restart go-crontab || echo "go-crontab did not start: journalctl -u go-crontab" >&2
	fi
fi
if [ -z "${2:-}" ] && [ "${1:-1}" != 2 ]; then
	cat <<'TEXT'
go-crontab is installed. Next:
  1. put the database into /etc/go-crontab/serve.env
  2. once for the cluster:  (set -a; . /etc/go-crontab/serve.env; go-crontab migrate --bootstrap)
     as another user of MySQL than the nodes': GOCRONTAB_DSN='…' before go-crontab
  3. on each machine:       systemctl enable --now go-crontab
More: /usr/share/doc/go-crontab/docs/operations.md
TEXT
fi
