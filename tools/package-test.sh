#!/bin/sh
# Installs the .deb of a release into a fresh Debian 12 in a folder, and runs a node there as the unit
# would: as the package's user, with the package's settings file and the unit's command line, on a MariaDB
# of this machine. Then it runs the unit itself under a systemd that is booted in that folder. It needs
# root, debootstrap, systemd-nspawn, and the output of `make release`.
#
#	tools/package-test.sh [FOLDER]
set -eu
cd "$(dirname "$0")/.."

say() { echo "package: $*"; }
fail() {
	say "FAIL: $*"
	exit 1
}

out=${1:-dist}
arch=$(dpkg --print-architecture)
deb=$(ls "$out"/go-crontab_*_"$arch".deb) || fail "no .deb for $arch in $out: make release"
rpm=$(find "$out" -name "go-crontab-*.$(uname -m).rpm" | grep .) || fail "no .rpm in $out"
[ "$(id -u)" -eq 0 ] || fail "wants root, for a root folder of its own"
command -v debootstrap >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap >/dev/null
command -v systemd-nspawn >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends systemd-container >/dev/null

work=$(mktemp -d)
root=$work/root
server=''
node=''
booted=''
end() {
	[ -z "$node" ] || kill -9 "$node" 2>/dev/null || true
	[ -z "$booted" ] || kill "$booted" 2>/dev/null || true
	[ -z "$booted" ] || wait "$booted" 2>/dev/null || true
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	umount "$root/proc" 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
trap 'exit 1' HUP INT TERM

mirror=${GOCRONTAB_DEBIAN_MIRROR:-$(apt-get -q update --print-uris -o Debug::NoLocking=true -o Dir::State::lists="$work" 2>/dev/null |
	sed -nE "s#^'([^']*)/dists/bookworm/InRelease'.*#\1#p" | head -n 1)}
[ -n "$mirror" ] || fail "apt's configuration names no mirror of Debian 12: GOCRONTAB_DEBIAN_MIRROR=URI"
say "making a Debian 12 root folder"
debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,procps,rpm bookworm "$root" "$mirror" >"$work/log" 2>&1 || {
	tail -n 20 "$work/log"
	fail "debootstrap"
}
mount -t proc proc "$root/proc"
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }

field() { dpkg-deb --field "$deb" "$1"; }
case $(field Maintainer) in *@localhost* | '') fail "the maintainer is $(field Maintainer)" ;; esac
case $(field Version) in
[1-9]* | 0.0.0~git20[0-9]*.*) ;;
*) fail "the version $(field Version) does not sort by age" ;;
esac

say "installing $(basename "$deb")"
cp "$deb" "$root/go-crontab.deb"
in_root dpkg -i /go-crontab.deb
[ "$(in_root stat -c '%U:%G %a' /etc/go-crontab/serve.env)" = "root:root 600" ] || fail "who may read serve.env"
[ "$(in_root stat -c '%U:%G %a' /etc/go-crontab)" = "root:go-crontab 750" ] || fail "who may read /etc/go-crontab"
[ "$(in_root stat -c '%U:%G %a' /usr/bin/go-crontab)" = "root:root 711" ] || fail "who may read the program"
for user in go-crontab go-crontab-jobs; do
	in_root getent passwd $user >/dev/null || fail "no user $user"
done
say "an upgrade from a package that let the group read serve.env"
in_root chown root:go-crontab /etc/go-crontab/serve.env
in_root chmod 0640 /etc/go-crontab/serve.env
in_root dpkg -i /go-crontab.deb >/dev/null
[ "$(in_root stat -c '%U:%G %a' /etc/go-crontab/serve.env)" = "root:root 600" ] || fail "who may read serve.env after an upgrade"
in_root systemd-analyze verify --man=no go-crontab.service || fail "the unit"
say "exposure by systemd's reckoning: $(in_root systemd-analyze security --offline=yes go-crontab.service | tail -n 1)"
in_root bash -n /usr/share/bash-completion/completions/go-crontab || fail "the completions of bash"
[ "$(in_root ls /usr/share/man/man1 | grep -c '^go-crontab')" -gt 50 ] || fail "the manual pages"
for page in README.md docs/install.md docs/images/jobs.png examples/jobs/backup.yaml deploy/prometheus/alerts.yaml; do
	[ "$(in_root stat -c '%U %a' "/usr/share/doc/go-crontab/$page")" = "root 644" ] || fail "$page"
done

say "starting a database"
# The node shares this machine's loopback with other tests, so the port depends on the process.
port=$((20000 + $$ % 20000))
mkdir "$work/data"
chown -R nobody "$work/data"
chmod 755 "$work"
mariadb-install-db --user=nobody --datadir="$work/data" --auth-root-authentication-method=normal >"$work/log" 2>&1 || fail "$(tail -n 5 "$work/log")"
PATH=$PATH:/usr/sbin mariadbd --no-defaults --user=nobody --datadir="$work/data" --socket="$work/data/socket" --port=$port --bind-address=127.0.0.1 --skip-name-resolve >"$work/log" 2>&1 &
server=$!
sql() { mariadb --no-defaults -uroot --socket="$work/data/socket" -e "$1"; }
tries=0
until sql "SELECT 1" >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 120 ] || fail "no database: $(tail -n 3 "$work/log")"
	sleep 0.5
done
sql "CREATE DATABASE crontab; CREATE USER crontab@'127.0.0.1' IDENTIFIED BY 'secret'; GRANT ALL ON crontab.* TO crontab@'127.0.0.1'"

api=$((port + 1))
sed -i "s#^GOCRONTAB_DSN=.*#GOCRONTAB_DSN='crontab:secret@tcp(127.0.0.1:$port)/crontab'#" "$root/etc/go-crontab/serve.env"
echo "GOCRONTAB_LISTEN=127.0.0.1:$api" >>"$root/etc/go-crontab/serve.env"

# Do as systemd would with the unit: its user, its folder, its settings, its command line.
mkdir -p "$root/var/lib/go-crontab"
in_root chown go-crontab:go-crontab /var/lib/go-crontab
command=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/go-crontab.service")
# shellcheck disable=SC2016 # for the shell inside
become() {
	exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin GOCRONTAB_STATE_DIR=/var/lib/go-crontab GOCRONTAB_RUN_AS=go-crontab-jobs \
		/bin/sh -c 'set -a; . /etc/go-crontab/serve.env; set="+setuid,+setgid,+kill"
		exec setpriv --reuid go-crontab --regid go-crontab --clear-groups --no-new-privs --inh-caps "$set" --ambient-caps "$set" --bounding-set "-all,$set" "$@"' sh "$@"
}
as_unit() { (become "$@"); }
token=$(as_unit /usr/bin/go-crontab migrate --bootstrap -o json | sed -n 's/.*"token": "\(.*\)".*/\1/p')
[ -n "$token" ] || fail "migrate --bootstrap"
say "starting: $command"
# shellcheck disable=SC2086 # the unit's words
become $command >"$work/node.log" 2>&1 &
node=$!
cli() { as_unit /usr/bin/env GOCRONTAB_SERVER="http://127.0.0.1:$api" GOCRONTAB_TOKEN="$token" /usr/bin/go-crontab "$@"; }
tries=0
until cli cluster >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 60 ] || fail "no node: $(tail -n 5 "$work/node.log")"
	sleep 0.5
done
cli job add who --every 1s -- 'id -un'
cli job run who --wait | grep -qx go-crontab-jobs || fail "the command did not run as the package's user for commands"
say "a command ran as go-crontab-jobs"
cli cluster

kill -TERM "$node"
wait "$node" || fail "the node ended with $?: $(tail -n 5 "$work/node.log")"
node=''
say "drained"

say "booting systemd"
umount "$root/proc"
systemd-nspawn --quiet --directory="$root" --boot --register=no --keep-unit --console=pipe >"$work/boot.log" 2>&1 &
booted=$!
inside() {
	# shellcheck disable=SC2046 # one number: process 1 of the container
	nsenter --target $(pgrep -P "$booted" | head -n 1) --mount --uts --ipc --pid -- /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
unit() { inside systemctl show --property="$1" --value go-crontab; }
await() { # what, seconds, command
	what=$1 tries=$(($2 * 2))
	shift 2
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "$what: $(inside journalctl --unit=go-crontab --no-pager --lines=20 --output=cat 2>&1 || tail -n 5 "$work/boot.log")"
		sleep 0.5
	done
}
await "systemd" 60 inside systemctl list-units
inside systemctl enable --quiet --now go-crontab || fail "the unit does not start"
ask() { inside /usr/bin/env HOME=/root GOCRONTAB_SERVER="http://127.0.0.1:$api" GOCRONTAB_TOKEN="$token" /usr/bin/go-crontab "$@"; }
ready() { [ "$(unit ActiveState)" = active ] && ask cluster >/dev/null; }
running() { [ "$(inside pgrep -c -x sleep)" -ge 3 ]; }
gone() { ! inside pgrep -x sleep; }
again() { ready && [ "$(unit MainPID)" != "$was" ]; }
begin() {
	was=$(unit MainPID)
	ask job run stubborn >/dev/null
	await "the command is running" 30 running
}
await "ready" 30 ready
ask job rm who >/dev/null

# Under the unit itself: secrets and rights with which a command could take over the cluster.
main=$(unit MainPID)
guard=$(inside pgrep -f crontab-guard)
ask job add rights --schedule @yearly -- 'id -un; grep -E "^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)" /proc/self/status' >/dev/null
rights=$(ask job run rights --wait)
echo "$rights" | grep -qx go-crontab-jobs || fail "a command runs as another user: $rights"
[ "$(echo "$rights" | grep -c '^Cap...:.0000000000000000$')" -eq 4 ] || fail "a command has capabilities: $rights"
echo "$rights" | grep -q '^NoNewPrivs:.1$' || fail "a command can gain rights: $rights"
tries=0
for what in "cat /etc/go-crontab/serve.env" "cat /proc/$main/environ" "ls /proc/$main/fd" "cat /proc/$guard/environ" "ls /proc/$guard/fd" \
	"ls /var/lib/go-crontab" "kill -9 $main" "kill -9 $guard"; do
	tries=$((tries + 1))
	ask job add thief-$tries --schedule @yearly -- "$what" >/dev/null || fail "add a job"
	ask job run thief-$tries --wait >/dev/null 2>&1 && fail "a command may: $what"
done
say "commands run as go-crontab-jobs without capabilities, and reach neither node, guard nor settings"
ask job add stubborn --schedule @yearly --overlap allow -- 'sleep 600 & setsid sleep 600 & trap "" TERM; sleep 600; true' >/dev/null

begin
inside kill -9 "$was"
await "the guard killed the commands of a node that was killed" 10 gone
await "a killed node is started again" 30 again
say "kill -9 of the node: commands gone, started again"

begin
inside kill -9 "$was" "$(inside pgrep -f crontab-guard)"
await "systemd killed the commands of a node and a guard that were killed" 18 gone
await "they are started again" 30 again
say "kill -9 of node and guard: commands gone before the session expires, started again"

begin
inside kill -STOP "$was"
await "the guard killed the commands of a node that stands still" 20 gone
await "the watchdog had a node that stands still started again" 60 again
say "a node that stands still: commands gone, ended by the watchdog, started again"

begin
inside systemctl stop go-crontab
[ "$(unit Result) $(unit ExecMainStatus)" = "success 0" ] || fail "stop: $(unit Result) $(unit ExecMainStatus)"
gone || fail "a command outlived a stop"
say "stopped in order, with a command that ignores SIGTERM"

echo GOCRONTAB_SLOTS=many >>"$root/etc/go-crontab/serve.env"
inside systemctl start go-crontab 2>/dev/null && fail "it starts with a setting that makes no sense"
sleep 3
[ "$(unit ActiveState) $(unit ExecMainStatus)" = "failed 2" ] || fail "a wrong setting: $(unit ActiveState) $(unit ExecMainStatus)"
sed -i '/^GOCRONTAB_SLOTS=/d' "$root/etc/go-crontab/serve.env"
say "with a setting that makes no sense it stays stopped"

inside systemctl poweroff 2>/dev/null || true
wait "$booted" || true
booted=''
mount -t proc proc "$root/proc"

in_root dpkg --purge go-crontab
for file in /usr/bin/go-crontab /etc/go-crontab /var/lib/go-crontab /var/lib/go-crontab-jobs /usr/lib/systemd/system/go-crontab.service; do
	[ ! -e "$root$file" ] || fail "$file is left behind"
done
say "purged, nothing left"

cp "$rpm" "$root/go-crontab.rpm"
in_root rpm -qp --requires /go-crontab.rpm | grep -qx bash || fail "what the .rpm requires"
in_root rpm -qpl /go-crontab.rpm | grep -qx /usr/lib/systemd/system/go-crontab.service || fail "what the .rpm holds"
in_root rpm -i --nodeps --badreloc --prefix=/ /go-crontab.rpm 2>/dev/null || in_root rpm -i --nodeps /go-crontab.rpm || fail "the .rpm"
in_root /usr/bin/go-crontab version || fail "the program of the .rpm"
say "PASS"
