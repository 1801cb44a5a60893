#!/bin/sh
# Gets a real MySQL server (9 or newer, out of Debian unstable) and prints the path of its program:
#
#	GOCRONTAB_MYSQLD=$(scripts/mysql.sh) go test ./sql
#
# The host is not touched: apt works on lists and a package database of its own, and no package is installed. Its files,
# with every library they need down to the C library, are unpacked into a folder (300 MB), where a wrapper starts the
# server through its own loader. Neither root nor chroot is needed, and there is no second download while the folder is
# there. Remove it to get a newer server.
#
#	GOCRONTAB_MYSQL_DIR      the folder; default /var/cache/go-crontab/mysql for root, whose home is closed to the
#	                         users that tests change to, else go-crontab/mysql in $XDG_CACHE_HOME or ~/.cache
#	GOCRONTAB_DEBIAN_MIRROR  the URI of a Debian mirror; default: the mirror that apt on this machine uses
set -eu

say() { echo "mysql: $*" >&2; }

if [ -n "${GOCRONTAB_MYSQL_DIR:-}" ]; then
	dir=$GOCRONTAB_MYSQL_DIR
elif [ "$(id -u)" -eq 0 ]; then
	dir=/var/cache/go-crontab/mysql
else
	dir=${XDG_CACHE_HOME:-${HOME:?}/.cache}/go-crontab/mysql
fi
case $dir in
/*) ;;
*) dir=$PWD/$dir ;;
esac
case $dir in
*[:\"\'\ ]*) say "$dir: a colon, quote or space in the path ends it for apt or the loader; set GOCRONTAB_MYSQL_DIR" && exit 2 ;;
esac
program=$dir/bin/mysqld

if "$program" --no-defaults --version >/dev/null 2>&1; then
	echo "$program"
	exit 0
fi

for command in apt-get apt-cache dpkg-deb; do
	command -v "$command" >/dev/null && continue
	say "no $command here: this needs Debian or Ubuntu. Elsewhere, install MySQL and name it: GOCRONTAB_MYSQLD=/path/to/mysqld"
	exit 1
done
# An old server that no longer starts, a folder half removed: the new one takes its place. What is not ours stays.
if [ -e "$dir" ] && [ ! -e "$program" ] && [ -n "$(ls -A "$dir" 2>/dev/null)" ]; then
	say "$dir holds something else than a server of ours; remove it, or set GOCRONTAB_MYSQL_DIR"
	exit 1
fi
mkdir -p "$(dirname "$dir")"

# Under another name and renamed when complete, so that the folder is whole or absent however we end.
new=$(mktemp -d "$dir.new-XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$new/apt/lists/partial" "$new/apt/archives/partial" "$new/apt/none" "$new/bin" "$new/root"
: >"$new/apt/status" # nothing counts as installed: each library comes along, none of the host's is used

# own_apt runs an apt tool on our folder. Proxies and passwords of the host's configuration stay in force.
own_apt() {
	tool=$1
	shift
	"$tool" -q \
		-o Dir::State="$new/apt" -o Dir::State::lists="$new/apt/lists" -o Dir::State::status="$new/apt/status" \
		-o Dir::Cache="$new/apt" -o Dir::Cache::archives="$new/apt/archives" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o Dir::Etc::sourcelist="$new/apt/debian.list" -o Dir::Etc::sourceparts="$new/apt/none" \
		-o Dir::Etc::preferences="$new/apt/none/x" -o Dir::Etc::preferencesparts="$new/apt/none" \
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o APT::Install-Recommends=false -o APT::Sandbox::User= \
		-o APT::Update::Post-Invoke= -o APT::Update::Post-Invoke-Success= "$@"
}

# mirrors are those of this machine's apt that may be of Debian: one that has the release we run on.
mirrors() {
	if [ -n "${GOCRONTAB_DEBIAN_MIRROR:-}" ]; then
		echo "$GOCRONTAB_DEBIAN_MIRROR"
		return
	fi
	# shellcheck disable=SC1091 # the host's
	name=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
	# With lists of our own, empty ones: nothing is left out for having been fetched, and no lock of the host is asked for.
	apt-get -q update --print-uris -o Dir::State::lists="$new/apt/none/lists" -o Debug::NoLocking=true 2>>"$new/log" |
		sed -nE "s#^'([^']*)/dists/($name|stable|testing|unstable|sid)/InRelease'.*#\1#p" | awk '!seen[$0]++'
}

fail() {
	cat "$new/log" >&2
	say "$*"
	exit 1
}

mkdir -p "$new/apt/none/lists/partial"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
signed=
[ ! -e "$keys" ] || signed="[signed-by=$keys] "
: >"$new/log"
found=
for mirror in $(mirrors); do
	echo "deb $signed$mirror unstable main" >"$new/apt/debian.list"
	say "reading what Debian unstable has at the mirror of this machine"
	if own_apt apt-get update --error-on=any >>"$new/log" 2>&1 &&
		own_apt apt-cache show mysql-server-core >"$new/apt/show" 2>>"$new/log"; then
		found=1
		break
	fi
done
[ -n "$found" ] || fail "no mirror in apt's configuration has mysql-server-core in Debian unstable (see above); name one: GOCRONTAB_DEBIAN_MIRROR=URI"

version=$(sed -n 's/^Version: //p' "$new/apt/show" | head -n 1)
say "downloading MySQL $version and its libraries (60 MB)"
own_apt apt-get install --yes --download-only mysql-server-core >>"$new/log" 2>&1 || fail "download: see above"

say "unpacking into $dir"
for package in "$new"/apt/archives/*.deb; do
	case ${package##*/} in
	perl* | libperl*) continue ;; # for scripts around the server, of which none is used
	esac
	dpkg-deb --fsys-tarfile "$package" >"$new/apt/files.tar"
	tar -x -f "$new/apt/files.tar" -C "$new/root" --no-same-owner \
		--exclude='./usr/share/doc*' --exclude='./usr/share/man*' --exclude='./usr/share/locale*' --exclude='./usr/bin*'
done

set -- "$new"/root/usr/lib/*/ld-linux*.so.*
[ -e "$1" ] || fail "no loader among the libraries; does Debian unstable lay them out anew?"
loader=${1#"$new/root/"}
libraries=$(dirname "$loader")

# What the caller says comes first, because --no-defaults must. The paths compiled in are those of an installed package.
# Nothing here is searched for: the wrapper also serves callers without PATH.
cat >"$new/bin/mysqld" <<WRAPPER
#!/bin/sh
# MySQL $version of Debian unstable, unpacked by scripts/mysql.sh.
root='ROOT'
exec "\$root/$loader" --inhibit-cache --library-path "\$root/$libraries" \\
	--argv0 "\$root/usr/sbin/mysqld" "\$root/usr/sbin/mysqld" "\$@" \\
	--basedir="\$root/usr" --plugin-dir="\$root/usr/lib/mysql/plugin" --lc-messages-dir="\$root/usr/share/mysql" --secure-file-priv=NULL
WRAPPER
wrapper() { sed -i "s|^root=.*|root='$1'|" "$new/bin/mysqld"; }
wrapper "$new/root"
chmod 755 "$new" "$new/bin/mysqld"
"$new/bin/mysqld" --no-defaults --version >>"$new/log" 2>&1 || fail "the unpacked server does not start: see above"
wrapper "$dir/root"
rm -rf "$new/apt" "$new/log"

# Two runs at once: the one that comes second throws its own away.
if ! "$program" --no-defaults --version >/dev/null 2>&1; then
	[ ! -e "$dir" ] || mv -T "$dir" "$new.old"
	rm -rf "$new.old"
	mv -T "$new" "$dir" 2>/dev/null || "$program" --no-defaults --version >/dev/null
fi
say "$("$program" --no-defaults --version | sed 's/.*Ver /MySQL /; s/ for .*//') is in $dir"
echo "$program"
