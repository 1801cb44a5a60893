#!/bin/sh
# Installs what building and testing need beyond Go, git and make:
#
#	tools/deps.sh server     a MariaDB server program (or MySQL); no service is set up or started
#	tools/deps.sh compiler   a C compiler, which `go test -race` needs
#	tools/deps.sh page       Node.js 18 or newer with npm, which build the web console
#	tools/deps.sh browser    Chromium, in which the console is tested, and a Chinese font for it
#	tools/deps.sh galera     the library of Galera, for tests with replicating MariaDB servers
#	tools/deps.sh release    zip, with which `make release` packs the Windows client
#	tools/deps.sh            the first two
#
# Several names are allowed.
#
# If everything is installed, it prints nothing and changes nothing. On systems other than Debian and
# Ubuntu, or without root, it prints the packages to install and fails.
set -eu

say() { echo "deps: $*" >&2; }

# has_server searches the same places as internal/privatedb.
has_server() {
	[ -z "${GOCRONTAB_MYSQLD:-}" ] || return 0
	PATH="$PATH:/usr/sbin:/usr/libexec:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/local/libexec"
	PATH="$PATH:/usr/local/mysql/bin:/usr/local/mariadb/bin:/opt/homebrew/bin:/opt/homebrew/opt/mariadb/bin"
	PATH="$PATH:/opt/homebrew/opt/mysql/bin:/usr/local/opt/mariadb/bin:/usr/local/opt/mysql/bin"
	server=$(command -v mariadbd || command -v mysqld) || return 1
	# Debian's mariadb-install-db makes the data folder with a program of the client package.
	[ "$server" != /usr/sbin/mariadbd ] || [ ! -e /etc/debian_version ] || command -v my_print_defaults >/dev/null
}

# has_compiler compiles a file, because Debian's gcc comes without the C library's headers.
has_compiler() {
	cc=$(go env CC)
	echo '#include <stdlib.h>' | ${cc:-gcc} -E - >/dev/null 2>&1
}

has_page() {
	command -v npm >/dev/null && node -e 'process.exit(process.versions.node.split(".")[0] >= 18 ? 0 : 1)' 2>/dev/null
}

# has_browser searches the same places as page/e2e/browser.ts.
has_browser() { [ -n "${CHROMIUM:-}" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null; }

# has_font reports whether a font has Chinese characters. Without one the console's pictures show boxes.
# Only pictures need it, so a system where this script cannot install it counts as having it.
has_font() { ! command -v apt-get >/dev/null || [ -n "$(fc-list :lang=zh-cn family 2>/dev/null)" ]; }

# has_galera searches the same places as test/members.
has_galera() {
	for library in /usr/lib/galera /usr/lib64/galera-4 /usr/lib/galera-4 /usr/lib64/galera /usr/lib; do
		[ ! -e "$library/libgalera_smm.so" ] || return 0
	done
	return 1
}

# server_packages prints the names of the packages. Debian 12 and Ubuntu 24.04 dropped the version from them.
server_packages() {
	for name in mariadb-server-core mariadb-client-core; do
		if apt-cache show "$name" >/dev/null 2>&1; then
			echo "$name"
		else
			apt-cache search --names-only "^$name-[0-9.]+\$" | cut -d' ' -f1 | sort -V | tail -n 1
		fi
	done
}

# as_root runs apt-get. It asks for a password only on a terminal.
as_root() {
	set -- env DEBIAN_FRONTEND=noninteractive "$@"
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif [ -t 0 ]; then
		sudo "$@"
	else
		sudo -n "$@"
	fi
}

need_server='' need_compiler='' need_page='' need_browser='' need_font='' need_galera='' need_zip=''
[ $# -gt 0 ] || set -- server compiler
for what in "$@"; do
	case $what in
	server) has_server || need_server=1 ;;
	compiler) has_compiler || need_compiler=1 ;;
	page) has_page || need_page=1 ;;
	browser)
		has_browser || need_browser=1
		has_font || need_font=1
		;;
	galera) has_galera || need_galera=1 ;;
	release) command -v zip >/dev/null || need_zip=1 ;;
	*) say "$what: want server, compiler, page, browser, galera or release" && exit 2 ;;
	esac
done
[ -n "$need_server$need_compiler$need_page$need_browser$need_font$need_galera$need_zip" ] || exit 0

say "missing:${need_server:+ a MariaDB or MySQL server program;}${need_compiler:+ a C compiler with headers, for go test -race;}${need_page:+ Node.js 18 or newer with npm, for the web console;}${need_browser:+ Chromium, to test the console;}${need_font:+ a Chinese font, for its pictures;}${need_galera:+ the library of Galera;}${need_zip:+ zip}"
packages="${need_compiler:+gcc libc6-dev }${need_page:+nodejs npm }${need_browser:+chromium }${need_font:+fontconfig fonts-wqy-microhei }${need_galera:+galera-4 }${need_zip:+zip}"
if ! command -v apt-get >/dev/null; then
	say "install it, then try again:"
	[ -z "$need_server" ] || say "  server:   dnf install mariadb-server | apk add mariadb mariadb-client | brew install mariadb"
	[ -z "$need_compiler" ] || say "  compiler: dnf install gcc glibc-devel | apk add gcc musl-dev | xcode-select --install"
	[ -z "$need_page" ] || say "  Node.js:  dnf install nodejs npm | apk add nodejs npm | brew install node"
	[ -z "$need_galera" ] || say "  galera:   dnf install galera-4"
	[ -z "$need_zip" ] || say "  zip:      dnf install zip | apk add zip | brew install zip"
	[ -z "$need_browser" ] || say "  browser:  dnf install chromium | apk add chromium | or say where one is: CHROMIUM=/path/to/it"
	exit 1
fi
if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
	say "neither root nor sudo; as root, run:"
	say "  apt-get update && apt-get install --no-install-recommends $packages${need_server:+ mariadb-server-core mariadb-client-core}"
	exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A third party's package source may be down. That alone is no reason to stop: the installation below fails if it matters.
as_root apt-get -qq update >"$log" 2>&1 || say "apt-get update complains; going on"
[ -z "$need_server" ] || packages="$packages $(server_packages | tr '\n' ' ')"
say "installing $packages"
# shellcheck disable=SC2086 # a list of names
if ! as_root apt-get -qq -o DPkg::Lock::Timeout=120 install --yes --no-install-recommends $packages >>"$log" 2>&1; then
	cat "$log" >&2
	say "apt-get install $packages: see above"
	exit 1
fi
