#!/bin/sh
# Builds a release in dist/: static programs for Linux, macOS and (the client) Windows, .deb and .rpm,
# manual pages, completions, the pages of docs/, bills of materials (for the program's Go modules and for
# the console's npm packages), checksums.
#
#	tools/release.sh [FOLDER]
#
# The same commit gives the same bytes on every machine with the same Go: paths, times, owners and build
# ids are omitted or taken from the commit. It needs page/dist (make page), Node.js, and zip.
set -eu
cd "$(dirname "$0")/.."

out=${1:-dist}
version=${VERSION:-$(git describe --always --dirty)}
mtime=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
# The version of a package must begin with a number. A commit without a tag comes before the first version, and after
# older commits: 0.0.0~git20261124.1058.d3d9d23.
case $version in
v[0-9]*) number=${version#v} ;;
[0-9]*.*) number=$version ;;
*) number=0.0.0~git$(date -u -d "@$mtime" +%Y%m%d.%H%M).$(echo "$version" | tr - .) ;;
esac
# Whoever makes the release may name others. Without a remote, the packages have no home page. The remote's URL may
# have a token, which must not get into the packages.
maintainer=${MAINTAINER:-$(git log -1 --format='%an <%ae>')}
homepage=${HOMEPAGE:-$(git config --get remote.origin.url | sed -E 's#^[a-z]*@([^:/]+):#https://\1/#; s#^https://[^/]*@#https://#; s#\.git$##' | grep '^https://' || true)}
targets=${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}

grep -q '<script' page/dist/index.html 2>/dev/null || { echo "release: page/dist is not built: make page" >&2; exit 1; }
rm -rf "$out"
mkdir -p "$out"
export CGO_ENABLED=0 TZ=UTC LC_ALL=C

go run ./tools/manual "$out" "$version" "$mtime"
gzip -9n "$out"/man/*.1

# The documentation that is packed with the program, and every file that it links to.
pages="README.md README.zh.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE docs/*.md docs/images docs/internals examples/jobs deploy/docker deploy/grafana deploy/kubernetes deploy/prometheus"
mkdir "$out/pages"
# shellcheck disable=SC2086 # a list of names
cp -r --parents $pages "$out/pages"
chmod -R u=rwX,go=rX "$out/pages"
find "$out/pages" -exec touch -d "@$mtime" {} +

for target in $targets; do
	os=${target%/*} arch=${target#*/}
	name=go-crontab-$version-$os-$arch
	dir=$out/$os-$arch
	program=go-crontab
	[ "$os" != windows ] || program=go-crontab.exe
	mkdir -p "$dir"
	GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X go-crontab/cli.version=$version" -o "$dir/$program" .
	cp -r "$out/pages/." "$dir"
	if [ "$os" = windows ]; then
		chmod -R u=rwX,go=rX "$dir"
		find "$dir" -exec touch -d "@$mtime" {} +
		(cd "$dir" && find . -type f | sort | zip -qX "../$name.zip" -@)
	else
		cp -r "$out/man" "$out/completions" "$dir/"
		tar -C "$dir" --sort=name --mtime="@$mtime" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
			-cf - . | gzip -9n >"$out/$name.tar.gz"
	fi
done

for target in $targets; do
	[ "${target%/*}" = linux ] || continue
	arch=${target#*/}
	for kind in deb rpm; do
		ARCH=$arch OUT=$out PACKAGE_VERSION=$number MAINTAINER=$maintainer HOMEPAGE=$homepage SOURCE_DATE_EPOCH=$mtime \
			go tool -modfile=tools/release/go.mod nfpm package --config deploy/package/nfpm.yaml --packager $kind --target "$out/"
	done
done

# The tool records the current time and a hash of itself. Without -trimpath the hash would depend on the path of Go.
stamp=$(date -u -d "@$mtime" +%Y-%m-%dT%H:%M:%SZ)
GOFLAGS=-trimpath go tool -modfile=tools/release/go.mod cyclonedx-gomod app -json -licenses -std -noserial -output "$out/go-crontab-$version.cdx.json" .
sed -i "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$stamp\"/" "$out/go-crontab-$version.cdx.json"

node tools/console-bill.mjs "$version" "$stamp" >"$out/go-crontab-$version-console.cdx.json"

for target in $targets; do rm -rf "${out:?}/${target%/*}-${target#*/}"; done
rm -rf "$out/man" "$out/completions" "$out/pages"
cd "$out"
sums=$(sha256sum -- *) # before there is a file for them
printf '%s\n' "$sums" >SHA256SUMS
cat SHA256SUMS
