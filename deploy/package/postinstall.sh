#!/bin/sh
# Makes the user of the node, and the user of its commands. Nothing is started: a node needs to be told its database first.
set -e
for user in go-crontab go-crontab-jobs; do
	if getent passwd $user >/dev/null; then
		continue
	fi
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers go-crontab.conf
	else
		getent group $user >/dev/null || groupadd --system $user
		useradd --system --gid $user --home-dir /var/lib/$user --no-create-home --shell /usr/sbin/nologin $user
	fi
done
install -d -m 0700 -o go-crontab-jobs -g go-crontab-jobs /var/lib/go-crontab-jobs

# Commands must not read the settings, also not those of an earlier version of this package. The node's user reads its keys in
# the folder, and the user of commands does not even see their names.
chown root:go-crontab /etc/go-crontab
chmod 0750 /etc/go-crontab
chown root:root /etc/go-crontab/serve.env
chmod 0600 /etc/go-crontab/serve.env
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
More: /usr/share/doc/go-crontab/docs/install.md
TEXT
fi
