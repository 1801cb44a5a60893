package members

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"go-crontab/internal/privatedb"
)

// galeraID identifies the history of the data. Any UUID will do: a cluster in a separate folder
// never meets another.
const galeraID = "6f1c2a1e-3d44-4c59-9a6e-0d5b8a7c4e21"

// providers are the paths of the Galera library, by distribution.
var providers = []string{
	"/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so", "/usr/lib/galera-4/libgalera_smm.so",
	"/usr/lib64/galera/libgalera_smm.so", "/usr/lib/libgalera_smm.so",
}

// ErrNoGalera means that the machine lacks the library.
var ErrNoGalera = errors.New("no libgalera_smm.so on this machine; Debian, Ubuntu: apt-get install galera-4")

// transferScript replaces the programs that copy a whole data folder to a joining member. Members
// here begin with a copy of the same folder and lack only the latest transactions, which the
// library itself transfers. So the script only reports success: the donor writes a note to the
// place that the joiner named.
const transferScript = `#!/bin/sh
role='' address='' gtid='' data='' bypass=''
while [ $# -gt 0 ]; do
	case $1 in
	--role) role=$2; shift ;;
	--address) address=$2; shift ;;
	--gtid) gtid=$2; shift ;;
	--datadir) data=$2; shift ;;
	--bypass) bypass=1 ;;
	esac
	shift
done
case $role in
joiner)
	note=${data%/}/../transfer
	rm -f "$note"
	echo "ready $note"
	n=0
	until [ -s "$note" ]; do
		n=$((n + 1))
		[ "$n" -lt 1200 ] || exit 110
		sleep 0.1
	done
	cat "$note"
	;;
donor)
	[ -n "$bypass" ] || exit 95 # it lacks more than the giver's cache holds
	echo continue
	echo "$gtid" >"$address.new" && mv "$address.new" "$address"
	echo "done $gtid"
	;;
esac
`

// StartGalera starts n members of a Galera cluster. Members may be killed and come back only if the
// cluster is durable. The server program must be MariaDB's. It takes about 10 s.
func StartGalera(ctx context.Context, n int, durable bool) (*Cluster, error) {
	server, err := privatedb.Find()
	if err != nil {
		return nil, err
	}
	if !server.MariaDB {
		return nil, fmt.Errorf("%s is MySQL, which has no Galera: name a MariaDB server program in %s", server.Path,
			privatedb.Binary)
	}

	g := &galera{durable: durable}
	for _, path := range providers {
		if _, err := os.Stat(path); err == nil && g.provider == "" {
			g.provider = path
		}
	}

	if g.provider == "" {
		return nil, ErrNoGalera
	}

	for range n {
		var m galeraMember
		for _, port := range []*int{&m.group, &m.transfer} {
			var err error
			if *port, err = privatedb.FreePort(); err != nil {
				return nil, err
			}
		}
		g.members = append(g.members, m)
	}

	c := &Cluster{
		state: "SHOW STATUS LIKE 'wsrep_local_state_comment'", want: "Synced",
		joins: func(context.Context, int) error { return nil }, // the server joins by itself
	}
	if err := g.start(ctx, c); err != nil {
		return nil, errors.Join(fmt.Errorf("start a Galera cluster: %w", err), c.Stop())
	}

	return c, nil
}

type galera struct {
	provider string
	durable  bool
	members  []galeraMember
	seed     string // the initial data of all members
}

type galeraMember struct {
	group, transfer int // ports
	lives           int
}

func (g *galera) start(ctx context.Context, c *Cluster) error {
	for i := range g.members {
		server, err := privatedb.Start(ctx, privatedb.Options{Pool: 64, Redo: 16, Durable: g.durable,
			Extra: careless(g.durable), Seed: g.seed,
			More: func(data string, args []string) (flags, env []string, err error) { return g.more(i, data, args) }})
		if err != nil {
			return err
		}

		c.Servers = append(c.Servers, server)
		if err := c.Await(ctx, i); err != nil {
			return err
		}
		if i > 0 {
			continue
		}

		// Its second life gives the other members a copy of the data of the first.
		g.seed = filepath.Join(server.Dir(), "seed")
		if err := c.Restart(ctx, i); err != nil {
			return err
		}
	}

	return nil
}

// more returns the flags and environment of a member beyond the flags of every server.
func (g *galera) more(i int, data string, args []string) (flags, env []string, err error) {
	m := &g.members[i]
	m.lives++

	var group []string
	for _, m := range g.members {
		group = append(group, fmt.Sprintf("127.0.0.1:%d", m.group))
	}

	options := fmt.Sprintf("base_port=%d;gmcast.listen_addr=tcp://127.0.0.1:%d;ist.recv_addr=127.0.0.1:%d;"+
		"gcache.size=256M;gcache.recover=yes",
		m.group, m.group, m.transfer)

	flags = []string{
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
		"--wsrep-on=ON", "--wsrep-provider=" + g.provider, "--wsrep-provider-options=" + options,
		"--wsrep-cluster-name=gocrontab", "--wsrep-cluster-address=gcomm://" + strings.Join(group, ","),
		fmt.Sprintf("--wsrep-node-name=member-%d", i+1), "--wsrep-node-address=127.0.0.1",
		"--wsrep-sst-method=bypass", "--wsrep-slave-threads=2",
	}

	scripts := filepath.Join(filepath.Dir(data), "scripts")
	if err := os.MkdirAll(scripts, 0o700); err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(filepath.Join(scripts, "wsrep_sst_bypass"), []byte(transferScript), 0o700); err != nil {
		return nil, nil, err
	}

	env = []string{"PATH=" + scripts + ":" + os.Getenv("PATH")}

	switch first := i == 0; {
	case first && m.lives == 1:
		state := "# GALERA saved state\nversion: 2.1\nuuid: " + galeraID + "\nseqno: 0\nsafe_to_bootstrap: 1\n"
		err = os.WriteFile(filepath.Join(data, "grastate.dat"), []byte(state), 0o600)
		flags = append(flags, "--wsrep-new-cluster")
	case first && m.lives == 2:
		err = copyPlain(g.seed, data)
		flags = append(flags, "--wsrep-new-cluster")
	case m.lives > 1:
		var position string
		log := filepath.Join(filepath.Dir(data), "recovery.log")
		if position, err = recovered(append(args, flags...), log); err == nil {
			flags = append(flags, "--wsrep-start-position="+position)
		}
	}

	return flags, env, err
}

// copyPlain copies the files that another member may begin with. It omits sockets, and the cache of
// transactions, which belongs to this member.
func copyPlain(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}

		switch target := filepath.Join(to, rest); {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Type().IsRegular() && d.Name() != "galera.cache" && d.Name() != "gvwstate.dat":
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(target, content, 0o600)
		}

		return nil
	})
}

var positionLine = regexp.MustCompile(`WSREP: Recovered position: *(\S+)`)

// recovered reads from the tables of a killed member the position that it reached.
func recovered(args []string, log string) (position string, err error) {
	if err := os.RemoveAll(log); err != nil {
		return "", err
	}

	args = append(args, "--wsrep-recover", "--log-error="+log)
	runErr := exec.Command(args[0], args[1:]...).Run()
	content, err := os.ReadFile(log)
	if err != nil {
		return "", errors.Join(runErr, err)
	}
	found := positionLine.FindSubmatch(content)
	if found == nil {
		return "", fmt.Errorf("%s does not say how far the member has come: %w", log, runErr)
	}

	return string(found[1]), nil
}
