#!/bin/sh
# The users stay, as Debian advises: files of jobs may belong to them.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "${1:-}" = purge ]; then
	rm -rf /var/lib/go-crontab /var/lib/go-crontab-jobs
fi
