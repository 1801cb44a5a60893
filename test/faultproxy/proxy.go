package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Proxy forwards connections to one server. Its methods are safe for concurrent use.
type Proxy struct {
	serverNetwork string
	serverAddress string
	listener      net.Listener
	ctx           context.Context
	cancel        context.CancelFunc
	running       sync.WaitGroup
	network       watched[network]

	mu     sync.Mutex
	links  map[*link]struct{}
	rules  []*Injected
	hook   func(Command)
	counts Counts
}

// Counts are totals since the proxy was started.
type Counts struct {
	Connections  int
	Commands     int // of any kind
	Statements   int // queries and executions of prepared statements, BEGIN and COMMIT included
	Transactions int // begun
	Commits      int // requested
	Resets       int // connections cut by ResetAfter; one may count in both directions
}

// New starts a proxy on a free port of the loopback interface for the server at address. The
// network is "unix" or "tcp". The proxy is closed when the test ends.
func New(t testing.TB, network, address string) *Proxy {
	t.Helper()
	p, err := Start(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Before starts a proxy, as New does, for the server in a DSN of go-sql-driver/mysql.
func Before(t testing.TB, dsn string) *Proxy {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return New(t, config.Net, config.Addr)
}

// Start is New for callers that close the proxy themselves.
func Start(network, address string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a fault proxy: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())

	p := &Proxy{
		serverNetwork: network,
		serverAddress: address,
		listener:      listener,
		ctx:           ctx,
		cancel:        cancel,
		links:         map[*link]struct{}{},
	}

	p.running.Go(p.accept)
	return p, nil
}

// Close stops listening, resets every connection and returns when all goroutines of the proxy have
// ended.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	p.CutAll()
	p.running.Wait()
}

// Addr returns the address for clients, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DSN returns a DSN of go-sql-driver/mysql changed to lead through the proxy. It panics if the DSN
// cannot be parsed.
func (p *Proxy) DSN(dsn string) string {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		panic(fmt.Sprintf("lead a DSN through the fault proxy: %v", err))
	}
	config.Net, config.Addr = "tcp", p.Addr()
	return config.FormatDSN()
}

// Add puts a rule to work. A command goes to the first rule that matches it and is not used up. Add
// panics on a rule without an action.
func (p *Proxy) Add(r Rule) *Injected {
	if r.Action.kind == noAction {
		panic("fault proxy: a rule needs an action")
	}

	i := inject(r)
	p.mu.Lock()
	defer p.mu.Unlock()

	// Clone: readers still use the old slice.
	p.rules = slices.DeleteFunc(slices.Clone(p.rules), func(i *Injected) bool {
		n, _ := i.count.get()
		return n.usedUp()
	})
	p.rules = append(p.rules, i)
	return i
}

// OnCommand calls f with every command before it is matched and forwarded. f may block, which
// delays only that connection. A new hook replaces the old one; nil removes it.
func (p *Proxy) OnCommand(f func(Command)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = f
}

// Counts returns the totals up to now.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Statements returns Counts().Statements.
func (p *Proxy) Statements() int { return p.Counts().Statements }

// accept is the proxy's loop: it makes a link for every client.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()

		if p.ctx.Err() != nil {
			if err == nil {
				abort(client)
			}
			return
		}

		if err != nil {
			time.Sleep(time.Millisecond) // out of descriptors, or that client has already left
			continue
		}
		if n, _ := p.network.get(); n.refuse {
			abort(client)
			continue
		}

		p.mu.Lock()
		p.counts.Connections++
		l := newLink(p, p.counts.Connections, client)
		p.links[l] = struct{}{}
		p.mu.Unlock()

		p.running.Go(func() {
			l.run()
			p.mu.Lock()
			delete(p.links, l)
			p.mu.Unlock()
		})
	}
}

// openLinks returns the links that exist now.
func (p *Proxy) openLinks() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.links))
}

// observe counts a command and calls the hook.
func (p *Proxy) observe(c Command) {
	p.mu.Lock()
	hook := p.hook
	p.counts.Commands++
	if c.IsStatement() {
		p.counts.Statements++
	}
	if c.begins() {
		p.counts.Transactions++
	}

	if c.IsCommit() {
		p.counts.Commits++
	}
	p.mu.Unlock()

	if hook != nil {
		hook(c)
	}
}

// countReset counts a connection that ResetAfter has ended.
func (p *Proxy) countReset(err error) {
	if errors.Is(err, errSpent) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.counts.Resets++
	}
}

// findRule returns a firing of the first rule that takes the command, or nil.
func (p *Proxy) findRule(c Command) *firing {
	p.mu.Lock()
	rules := p.rules
	p.mu.Unlock()
	for _, i := range rules {
		if f := i.begin(c); f != nil {
			return f
		}
	}
	return nil
}
