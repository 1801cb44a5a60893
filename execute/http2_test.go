package execute

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"go-crontab/job"
)

// TestHTTP2Unseen: a server refuses requests in the ways that promise that it did not process them. net/http exports no
// names for these errors, so this test must notice when they change.
func TestHTTP2Unseen(t *testing.T) {
	t.Parallel()
	borrowed := httptest.NewUnstartedServer(http.NotFoundHandler())
	borrowed.StartTLS()
	cert := borrowed.TLS.Certificates
	borrowed.Close()
	const (
		headers, reset, settings, goAway = 1, 3, 4, 7
		noError, internalError           = 0, 2
	)

	for name, tc := range map[string]struct {
		refuse  func(w io.Writer, stream uint32)
		times   int64
		outcome job.Outcome
		asked   int64
	}{
		"refused":           {func(w io.Writer, stream uint32) { frame(w, reset, stream, 0, 0, 0, refusedStream) }, 1, job.Succeeded, 2},
		"refused for ever":  {func(w io.Writer, stream uint32) { frame(w, reset, stream, 0, 0, 0, refusedStream) }, 99, job.Failed, maxTries},
		"going away":        {func(w io.Writer, _ uint32) { frame(w, goAway, 0, 0, 0, 0, 0, 0, 0, 0, noError) }, 1, job.Succeeded, 2},
		"broken in between": {func(w io.Writer, stream uint32) { frame(w, reset, stream, 0, 0, 0, internalError) }, 1, job.Failed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			addr := newRaw(t, func(plain net.Conn, _ *bufio.Reader) {
				c := tls.Server(plain, &tls.Config{Certificates: cert, NextProtos: []string{"h2"}})
				r := bufio.NewReader(c)
				if _, err := r.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
					return
				}
				frame(c, settings, 0)
				for {
					var head [9]byte
					if _, err := io.ReadFull(r, head[:]); err != nil {
						return
					}
					if _, err := r.Discard(int(binary.BigEndian.Uint32(append([]byte{0}, head[:3]...)))); err != nil {
						return
					}
					if head[3] != headers {
						continue
					}
					stream := binary.BigEndian.Uint32(head[5:])
					if asked.Add(1) <= tc.times {
						tc.refuse(c, stream)
						continue
					}
					frame(c, headers|1<<8|4<<8, stream, 0x88) // the end of stream and headers; ":status: 200" by its number
				}
			})
			got := requests(t).call(t, request("https://"+addr, func(r *job.HTTP) { r.TLS = &job.HTTPTLS{SkipVerify: true} }))
			is(t, name, got, tc.outcome)
			if asked.Load() != tc.asked {
				t.Errorf("%s: the server was asked %d times, want %d", name, asked.Load(), tc.asked)
			}
		})
	}
}

// frame writes a frame of HTTP/2. The low byte of kind is its type, the next one its flags.
func frame(w io.Writer, kind uint16, stream uint32, payload ...byte) {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind&0xff))
	b = append(b, byte(kind>>8))
	b = binary.BigEndian.AppendUint32(b, stream)
	_, _ = w.Write(append(b, payload...)) // the client has gone: the test sees that
}
