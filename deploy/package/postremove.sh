#!/bin/sh
# The user stays, as Debian advises: files of jobs may belong to it.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "${1:-}" = purge ]; then
	rm -rf /var/lib/go-crontab
fi
