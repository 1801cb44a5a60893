#!/bin/sh
# Downloads a database server of a chosen kind and version, and prints the path of its program:
#
#	GOCRONTAB_MYSQLD=$(tools/engine.sh mysql-9) go test ./sql
#
#	tools/engine.sh mysql-9         out of Debian unstable
#	tools/engine.sh mysql-8.4       out of Ubuntu 26.04
#	tools/engine.sh mysql-8.0       out of Ubuntu 22.04
#	tools/engine.sh mariadb-11      out of Debian unstable
#	tools/engine.sh mariadb-10.6    out of Ubuntu 22.04
#
# The host is not changed: apt uses separate lists and a separate package database, and installs no
# package. The server's files and all its libraries, including the C library, are unpacked into a
# folder (300 MB). A wrapper there starts the server through its own loader. Neither root nor chroot is
# needed. While the folder exists nothing is downloaded again; remove it to get a newer server.
#
#	GOCRONTAB_ENGINES        the folder with a folder for every server; default /var/cache/go-crontab for root,
#	                         because tests change to users that cannot enter root's home; otherwise go-crontab
#	                         in $XDG_CACHE_HOME or ~/.cache
#	GOCRONTAB_DEBIAN_MIRROR  the URI of a Debian mirror; default: the mirror that apt on this machine uses
#	GOCRONTAB_UBUNTU_MIRROR  the URI of a mirror of Ubuntu's archive; default http://archive.ubuntu.com/ubuntu
set -eu

say() { echo "engine: $*" >&2; }

engine=${1:-}
case $engine in
mysql-9) release=unstable package=mysql-server-core ;;
mysql-8.4) release=resolute package=mysql-server-core ;;
mysql-8.0) release=jammy package=mysql-server-core-8.0 ;;
mariadb-11) release=unstable package=mariadb-server-core ;;
mariadb-10.6) release=jammy package=mariadb-server-core-10.6 ;;
*) say "${engine:-no word}: want mysql-9, mysql-8.4, mysql-8.0, mariadb-11 or mariadb-10.6" && exit 2 ;;
esac
case $engine in
mysql-*) server=mysqld ;;
*) server=mariadbd ;;
esac

if [ -n "${GOCRONTAB_ENGINES:-}" ]; then
	dir=$GOCRONTAB_ENGINES/$engine
elif [ "$(id -u)" -eq 0 ]; then
	dir=/var/cache/go-crontab/$engine
else
	dir=${XDG_CACHE_HOME:-${HOME:?}/.cache}/go-crontab/$engine
fi
case $dir in
/*) ;;
*) dir=$PWD/$dir ;;
esac
case $dir in
*[:\"\'\ ]*) say "$dir: a colon, quote or space in the path ends it for apt or the loader; set GOCRONTAB_ENGINES" && exit 2 ;;
esac
program=$dir/bin/$server

if "$program" --no-defaults --version >/dev/null 2>&1; then
	echo "$program"
	exit 0
fi

for command in apt-get apt-cache dpkg-deb; do
	command -v "$command" >/dev/null && continue
	say "no $command here: this needs Debian or Ubuntu. Elsewhere, install a server and name it: GOCRONTAB_MYSQLD=/path/to/$server"
	exit 1
done
# Replace an old server that no longer starts, or a half-removed folder. Leave any other folder alone.
if [ -e "$dir" ] && [ ! -e "$program" ] && [ -n "$(ls -A "$dir" 2>/dev/null)" ]; then
	say "$dir holds something else than a server of ours; remove it, or set GOCRONTAB_ENGINES"
	exit 1
fi
mkdir -p "$(dirname "$dir")"

# Work under another name and rename at the end, so that the folder is complete or absent if we are stopped.
new=$(mktemp -d "$dir.new-XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$new/apt/lists/partial" "$new/apt/archives/partial" "$new/apt/none/lists/partial" "$new/bin" "$new/root"
: >"$new/apt/status" # nothing counts as installed, so every library is downloaded
: >"$new/log"

# own_apt runs an apt tool on our folder, with the proxies and passwords of the host's configuration.
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

# debian_mirrors prints the mirrors in this machine's apt configuration that have the running Debian release.
debian_mirrors() {
	if [ -n "${GOCRONTAB_DEBIAN_MIRROR:-}" ]; then
		echo "$GOCRONTAB_DEBIAN_MIRROR"
		return
	fi
	# shellcheck disable=SC1091 # a file of the host
	name=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
	# Empty lists of our own, so that apt omits nothing as already fetched and needs no lock of the host.
	apt-get -q update --print-uris -o Dir::State::lists="$new/apt/none/lists" -o Debug::NoLocking=true 2>>"$new/log" |
		sed -nE "s#^'([^']*)/dists/($name|stable|testing|unstable|sid)/InRelease'.*#\1#p" | awk '!seen[$0]++'
}

fail() {
	cat "$new/log" >&2
	say "$*"
	exit 1
}

# sources writes apt's configuration for a mirror, a keyring, and releases.
sources() {
	mirror=$1 keys=$2 components=$3
	shift 3
	for name in "$@"; do
		if [ -e "$keys" ]; then
			echo "deb [signed-by=$keys] $mirror $name $components"
		else
			echo "deb $mirror $name $components"
		fi
	done >"$new/apt/debian.list"
}

# read_debian reads the package lists of Debian unstable, and fails if a package is missing.
read_debian() {
	wanted=$1
	say "reading what Debian unstable has at the mirror of this machine"
	for mirror in $(debian_mirrors); do
		sources "$mirror" /usr/share/keyrings/debian-archive-keyring.gpg main unstable
		if own_apt apt-get update --error-on=any >>"$new/log" 2>&1 && own_apt apt-cache show "$wanted" >"$new/apt/show" 2>>"$new/log"; then
			return
		fi
	done
	fail "no mirror in apt's configuration has $wanted in Debian unstable (see above); name one: GOCRONTAB_DEBIAN_MIRROR=URI"
}

# read_ubuntu reads the package lists of an Ubuntu release. Its keys come in a package that Debian signs.
read_ubuntu() {
	keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
	if [ ! -e "$keyring" ]; then
		read_debian ubuntu-keyring
		(cd "$new/apt" && own_apt apt-get download ubuntu-keyring >>"$new/log" 2>&1) || fail "download of ubuntu-keyring: see above"
		dpkg-deb -x "$new"/apt/ubuntu-keyring_*.deb "$new/apt/keys"
		keyring=$new/apt/keys$keyring
		[ -e "$keyring" ] || fail "Debian's ubuntu-keyring does not hold ${keyring##*/} any more"
	fi
	sources "${GOCRONTAB_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}" "$keyring" "main universe" "$release" "$release-updates" "$release-security"
	say "reading what Ubuntu $release has"
	if ! own_apt apt-get update --error-on=any >>"$new/log" 2>&1 || ! own_apt apt-cache show "$package" >"$new/apt/show" 2>>"$new/log"; then
		fail "no $package in Ubuntu $release (see above); name another mirror: GOCRONTAB_UBUNTU_MIRROR=URI"
	fi
}

case $release in
unstable) read_debian "$package" ;;
*) read_ubuntu ;;
esac

version=$(sed -n 's/^Version: //p' "$new/apt/show" | head -n 1)
say "downloading $engine, which is $version, and its libraries (60 MB)"
own_apt apt-get install --yes --download-only "$package" >>"$new/log" 2>&1 || fail "download: see above"

say "unpacking into $dir"
for file in "$new"/apt/archives/*.deb; do
	case ${file##*/} in
	perl* | libperl* | mariadb-client*) continue ;; # for scripts that are not used here
	esac
	dpkg-deb --fsys-tarfile "$file" >"$new/apt/files.tar"
	# Newer releases keep everything in /usr, older releases have the C library in a separate /lib.
	tar -x -f "$new/apt/files.tar" -C "$new/root" --no-same-owner --keep-directory-symlink \
		--exclude='./usr/share/doc*' --exclude='./usr/share/man*' --exclude='./usr/share/locale*'
done
# The only other program that is needed is the script that makes MariaDB's data folder.
script=$new/root/usr/bin/mariadb-install-db
[ ! -e "$script" ] || mv "$script" "$new/apt/install-db"
rm -rf "$new/root/usr/bin"

loader=
for found in "$new"/root/usr/lib/*/ld-linux*.so.* "$new"/root/lib/*/ld-linux*.so.*; do
	[ ! -e "$found" ] || loader=${loader:-${found#"$new/root/"}}
done
[ -n "$loader" ] || fail "no loader among the libraries; are they laid out anew in $release?"
libraries=${loader%/*}
libraries=${libraries#usr/}

# The caller's arguments come first, because --no-defaults must be first. The compiled-in paths are of an
# installed package, so the wrapper overrides them. It uses absolute paths, so it also works without PATH.
share=usr/share/mysql
[ ! -e "$new/root/usr/share/mariadb/english" ] || share=usr/share/mariadb
case $engine in
mysql-*) more=--secure-file-priv=NULL ;; # the default is a folder that only the service's package creates
*)
	more=
	# The script that makes a data folder starts the server itself. It insists on two programs that have no
	# work here: there are no configuration files to read, and this machine's name need not be resolved.
	mkdir "$new/root/usr/bin"
	mv "$new/apt/install-db" "$new/root/usr/bin/mariadb-install-db"
	mv "$new/root/usr/sbin/mariadbd" "$new/root/usr/sbin/mariadbd.real"
	ln -s ../../../bin/mariadbd "$new/root/usr/sbin/mariadbd"
	for unneeded in my_print_defaults resolveip; do
		printf '#!/bin/sh\nexit 0\n' >"$new/root/usr/bin/$unneeded"
		chmod 755 "$new/root/usr/bin/$unneeded"
	done
	cat >"$new/bin/mariadb-install-db" <<'WRAPPER'
#!/bin/sh
# The script of the server in this folder, unpacked by tools/engine.sh.
root='ROOT'
exec /bin/sh "$root/usr/bin/mariadb-install-db" "$@" --basedir="$root/usr"
WRAPPER
	chmod 755 "$new/bin/mariadb-install-db"
	;;
esac
real=usr/sbin/$server
[ ! -e "$new/root/$real.real" ] || real=$real.real
cat >"$new/bin/$server" <<WRAPPER
#!/bin/sh
# $engine, which is $version, unpacked by tools/engine.sh.
root='ROOT'
exec "\$root/$loader" --inhibit-cache --library-path "\$root/usr/$libraries:\$root/$libraries" \\
	--argv0 "\$root/usr/sbin/$server" "\$root/$real" "\$@" \\
	--basedir="\$root/usr" --plugin-dir="\$root/usr/lib/mysql/plugin" --lc-messages-dir="\$root/$share" $more
WRAPPER
wrappers() { sed -i "s|^root=.*|root='$1'|" "$new"/bin/*; }
wrappers "$new/root"
chmod 755 "$new" "$new/bin/$server"
"$new/bin/$server" --no-defaults --version >>"$new/log" 2>&1 || fail "the unpacked server does not start: see above"
wrappers "$dir/root"
rm -rf "$new/apt" "$new/log"

# If two runs work at once, the later discards its own copy.
if ! "$program" --no-defaults --version >/dev/null 2>&1; then
	[ ! -e "$dir" ] || mv -T "$dir" "$new.old"
	rm -rf "$new.old"
	mv -T "$new" "$dir" 2>/dev/null || "$program" --no-defaults --version >/dev/null
fi
say "$("$program" --no-defaults --version | sed 's/.*Ver //; s/ for .*//') is in $dir"
echo "$program"
