package sql

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
)

// newCA makes a self-signed certificate of 127.0.0.1.
func newCA(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return certFile, keyFile
}

// TestS9TLS connects to a real server that speaks TLS, with each TLS setting of a DSN.
func TestS9TLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := newCA(t, dir, "server")
	other, _ := newCA(t, dir, "other")
	server, err := privatedb.Start(context.Background(), privatedb.Options{
		Pool: 64, Redo: 16, TCP: true, Extra: []string{"--ssl-cert=" + cert, "--ssl-key=" + key},
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { server.Stop() })
	if err := server.CreateSchema(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}

	dsn := server.DSNAt(server.Addr(), "x")
	for params, want := range map[string]string{
		"?tls-ca=" + cert:                    "TLS",
		"?tls-ca=" + other:                   "certificate",
		"?tls=true":                          "certificate",
		"":                                   "plain",
		"?tls=false":                         "plain",
		"?tls=skip-verify&tls-insecure=true": "TLS",
		"?tls=preferred&tls-insecure=true":   "TLS",
		"?tls-ca=" + cert + "&tls-insecure=false":         "TLS",
		"?tls-ca=" + cert + "&allowAllFiles=true":         "TLS",
		"?tls=true&allowFallbackToPlaintext=true":         "do not protect against an impostor",
		"?allowFallbackToPlaintext=true":                  "do not protect against an impostor",
		"?tls=skip-verify":                                "do not protect against an impostor",
		"?tls=Skip-Verify":                                "do not protect against an impostor",
		"?tls=preferred":                                  "do not protect against an impostor",
		"?tls=preferred&tls-insecure=1":                   "want true or false",
		"?tls=preferred&tls-insecure=true&tls-ca=" + cert: "conflict",
		"?tls-ca=" + filepath.Join(dir, "nix.pem"):        "no such file",
		"?tls-ca=" + key:                                  "no PEM certificate",
		"?tls=" + cert:                                    "DSN",
	} {
		got := func() string {
			db, err := Open(dsn+params, DefaultTimeouts, 1)
			if err != nil {
				return err.Error()
			}
			defer db.Close()

			var name, cipher string
			if err := db.Raw().QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil {
				return err.Error()
			}
			if cipher == "" {
				return "plain"
			}

			return "TLS"
		}()
		if !strings.Contains(got, want) || want == "plain" && got != want || want == "TLS" && got != want {
			t.Errorf("%s: got %q, want %q", strings.ReplaceAll(params, dir, ""), got, want)
		}
	}
}

func TestExposed(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]bool{
		"u:p@tcp(db:3306)/x": true, "u:p@tcp(10.0.0.1:3306)/x": true, "u:p@tcp(db:3306)/x?tls=true": false,
		"u:p@tcp(127.0.0.1:3306)/x": false, "u:p@tcp([::1]:3306)/x": false,
		"u:p@tcp(localhost:3306)/x": false, "u:p@unix(/run/mysqld.sock)/x": false, "u:p@tcp(db:3306)/x?tls=false": true,
		"nonsense": false,
	} {
		if got := Exposed(dsn); got != want {
			t.Errorf("%s: got %v, want %v", dsn, got, want)
		}
	}
}

// rogue is a server that asks for secrets that a server must not get.
type rogue struct {
	addr   string
	auth   []byte // its answer to the login
	answer []byte // its answer to the first query

	mu  sync.Mutex
	got bytes.Buffer // everything that clients sent after that
}

func startRogue(t *testing.T, auth, answer []byte) *rogue {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { l.Close() })
	r := &rogue{addr: l.Addr().String(), auth: auth, answer: answer}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(c)
		}
	}()

	return r
}

var okPacket = []byte{0, 0, 0, 2, 0, 0, 0}

// serve speaks just enough of MySQL's protocol.
func (r *rogue) serve(c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	write := func(seq byte, payload []byte) {
		c.Write(append([]byte{byte(len(payload)), byte(len(payload) >> 8), byte(len(payload) >> 16), seq}, payload...))
	}
	read := func() (seq byte, payload []byte, err error) {
		var head [4]byte
		if _, err = io.ReadFull(c, head[:]); err != nil {
			return 0, nil, err
		}
		payload = make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
		_, err = io.ReadFull(c, payload)
		return head[3], payload, err
	}

	// Protocol 10, with LOCAL INFILE and authentication by plugin among its capabilities; no TLS.
	hello := append([]byte{10}, "8.0.36\x00"...)
	hello = append(hello, 1, 0, 0, 0)
	hello = append(hello, "12345678\x00"...)
	hello = append(hello, 0xff, 0xf7, 45, 2, 0, 0xff, 0xc1, 21)
	hello = append(hello, make([]byte, 10)...)
	hello = append(hello, "123456789012\x00mysql_native_password\x00"...)
	write(0, hello)
	seq, _, err := read()
	if err != nil {
		return
	}

	write(seq+1, r.auth)
	for {
		seq, payload, err := read()
		if err != nil {
			return
		}

		if len(payload) > 0 && payload[0] == 3 && seq == 0 { // a query
			write(1, r.answer)
			continue
		}

		r.mu.Lock()
		r.got.Write(payload)
		r.mu.Unlock()
		write(seq+1, okPacket)
	}
}

func (r *rogue) received() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

// TestS9RogueServer: a server cannot get our files, make us do without TLS, or get our password by
// asking for it in clear text. Without TLS it can get the password anyway, encrypted with its own
// key: see docs/security.md.
func TestS9RogueServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("top-secret"), 0o600); err != nil {
		t.Fatal(err)
	}

	try := func(r *rogue, params string) error {
		db, err := Open(fmt.Sprintf("user:hunter2@tcp(%s)/x%s", r.addr, params), DefaultTimeouts, 1)
		if err != nil {
			return err
		}
		defer db.Close()
		return db.Ping(t.Context())
	}

	files := startRogue(t, okPacket, append([]byte{0xfb}, file...))
	for _, params := range []string{"", "?allowAllFiles=true"} {
		if err := try(files, params); err == nil || strings.Contains(files.received(), "top-secret") {
			t.Errorf("a server that wants a file, with %q: got %v, and it has %q", params, err, files.received())
		}
	}

	clear := startRogue(t, append([]byte{0xfe}, "mysql_clear_password\x00"...), okPacket)
	for _, params := range []string{"", "?allowCleartextPasswords=true"} {
		if err := try(clear, params); err == nil || strings.Contains(clear.received(), "hunter2") {
			t.Errorf("a server that wants the password in clear, with %q: got %v, and it has %q", params, err,
				clear.received())
		}
	}

	plain := startRogue(t, okPacket, okPacket)
	if err := try(plain, ""); err != nil {
		t.Errorf("a server that is none of these: %v; then the others prove nothing", err)
	}
	if err := try(plain, "?tls=true"); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("a server that cannot speak TLS where it must: got %v", err)
	}
}
