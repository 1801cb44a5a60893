#!/bin/sh
# Stops the node when the package goes, not when a newer one replaces it.
set -e
case "${1:-}" in
remove | purge | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now go-crontab || true
	fi
	;;
esac
