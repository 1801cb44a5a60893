// Prints the bill of materials of the web console, as CycloneDX: the npm packages that are bundled into
// page/dist, according to page/package-lock.json. It does not use `npm sbom`, which prints a different
// text each time, omits packages that a build tool may use as well (yaml), and is missing in the npm of
// Debian 12.
//
//	node tools/console-bill.mjs VERSION TIME
import { readFileSync } from 'node:fs'

const [version, time] = process.argv.slice(2)
const lock = JSON.parse(readFileSync(new URL('../page/package-lock.json', import.meta.url), 'utf8'))
if (lock.lockfileVersion !== 3) throw new Error(`page/package-lock.json has version ${lock.lockfileVersion}, want 3`)

const inside = 'node_modules/'
const packages = new Map() // by their path in npm's folder; without packages that only build the console
for (const [path, found] of Object.entries(lock.packages)) {
	if (path === '' || found.dev) continue
	const name = found.name ?? path.slice(path.lastIndexOf(inside) + inside.length)
	packages.set(path, { ...found, name, ref: `${name}@${found.version}` })
}

// find searches for a package as Node.js does: in the folder of the package that needs it, then further out.
function find(path, name) {
	for (;;) {
		const found = packages.get((path && path + '/') + inside + name)
		if (found || path === '') return found
		path = path.slice(0, Math.max(path.lastIndexOf('/' + inside), 0))
	}
}

function wants(path, names, optional) {
	return Object.keys(names ?? {}).flatMap((name) => {
		const found = find(path, name)
		if (!found && !optional) throw new Error(`page/package-lock.json has no ${name}, which ${path || 'the console'} wants`)
		return found ? [found.ref] : []
	})
}

function dependency(ref, path, entry) {
	const on = [...wants(path, entry.dependencies, false), ...wants(path, entry.optionalDependencies, true), ...wants(path, entry.peerDependencies, true)]
	return { ref, dependsOn: [...new Set(on)].sort() }
}

function component(p) {
	const [algorithm, digest] = [p.integrity.slice(0, p.integrity.indexOf('-')), p.integrity.slice(p.integrity.indexOf('-') + 1)]
	if (algorithm !== 'sha512') throw new Error(`page/package-lock.json: the digest of ${p.name} is ${algorithm}, want sha512`)
	return {
		'bom-ref': p.ref,
		type: 'library',
		name: p.name,
		version: p.version,
		scope: 'required',
		purl: `pkg:npm/${p.name.replace('@', '%40')}@${p.version}`,
		hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
		...(p.license && { licenses: [/[\s()]/.test(p.license) ? { expression: p.license } : { license: { id: p.license } }] }),
	}
}

const root = `go-crontab-page@${version}`
const byRef = new Map([...packages].map(([path, p]) => [p.ref, [path, p]]).sort(([a], [b]) => (a < b ? -1 : 1)))
console.log(JSON.stringify({
	$schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
	bomFormat: 'CycloneDX',
	specVersion: '1.5',
	version: 1,
	metadata: { timestamp: time, component: { 'bom-ref': root, type: 'application', name: 'go-crontab-page', version } },
	components: [...byRef.values()].map(([, p]) => component(p)),
	dependencies: [dependency(root, '', lock.packages['']), ...[...byRef].map(([ref, [path, p]]) => dependency(ref, path, p))],
}, null, 2))
