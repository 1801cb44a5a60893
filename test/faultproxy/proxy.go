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

// Proxy forwards connections to one server. Its methods may be called from anywhere at any time.
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

// Counts says what has passed through a proxy since it began.
type Counts struct {
	Connections  int
	Commands     int // of every kind
	Statements   int // queries and executions of prepared statements; BEGIN and COMMIT count
	Transactions int // begun
	Commits      int // asked for
	Resets       int // connections that ResetAfter has cut; one may count for both directions
}

// New starts a proxy on a free port of the loopback interface for the server at address, network being "unix" or
// "tcp". It is closed when the test ends.
func New(t testing.TB, network, address string) *Proxy {
	t.Helper()
	p, err := Start(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Before is New for the server that a DSN of go-sql-driver/mysql names.
func Before(t testing.TB, dsn string) *Proxy {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return New(t, config.Net, config.Addr)
}

// Start is New for callers who close the proxy themselves.
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

// Close stops listening, resets every connection and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	p.CutAll()
	p.running.Wait()
}

// Addr is where clients connect, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DSN rewrites a DSN of go-sql-driver/mysql to lead through the proxy. It panics if the DSN cannot be parsed.
func (p *Proxy) DSN(dsn string) string {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		panic(fmt.Sprintf("lead a DSN through the fault proxy: %v", err))
	}
	config.Net, config.Addr = "tcp", p.Addr()
	return config.FormatDSN()
}

// Add puts a rule to work. The first rule that matches a command and is not used up takes it. Add panics on a rule
// without an action.
func (p *Proxy) Add(r Rule) *Injected {
	if r.Action.kind == noAction {
		panic("fault proxy: a rule needs an action")
	}
	i := inject(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	// A copy, because readers hold on to the old one.
	p.rules = slices.DeleteFunc(slices.Clone(p.rules), func(i *Injected) bool {
		n, _ := i.count.get()
		return n.usedUp()
	})
	p.rules = append(p.rules, i)
	return i
}

// OnCommand has f called with every command before it is matched and forwarded; it may block, which holds up that
// one connection. A new hook replaces the old one; nil removes it.
func (p *Proxy) OnCommand(f func(Command)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = f
}

// Counts returns what has passed so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Statements is Counts().Statements.
func (p *Proxy) Statements() int { return p.Counts().Statements }

// accept is the proxy's loop: a link for every client.
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
			time.Sleep(time.Millisecond) // descriptors are short, or that client has left already
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

// standing lists the links there are.
func (p *Proxy) standing() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.links))
}

// observe counts a command and tells the hook.
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

// spent counts a connection that ends because ResetAfter wants it.
func (p *Proxy) spent(err error) {
	if errors.Is(err, errSpent) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.counts.Resets++
	}
}

// strike finds the rule that takes the command, if any.
func (p *Proxy) strike(c Command) *firing {
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
