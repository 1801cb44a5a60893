package faultproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
)

const (
	headerSize = 4        // three bytes of length, one of sequence number
	maxPayload = 0xffffff // a packet of this length is continued in the next one
)

// These capabilities would hide commands from the proxy, or put something before their text.
const hidingCapabilities = 1<<5 | 1<<11 | 1<<27 // compression, TLS, query attributes

// readPacket reads one packet and returns it with its header.
func readPacket(r *bufio.Reader) ([]byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	size := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
	packet := make([]byte, headerSize+size)
	copy(packet, header[:])
	_, err := io.ReadFull(r, packet[headerSize:])
	return packet, err
}

// makePacket puts a header in front of a short payload.
func makePacket(sequence byte, payload []byte) []byte {
	n := len(payload)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), sequence}, payload...)
}

// A message is a packet from a client, with its continuations if that packet is full.
type message struct {
	raw         []byte // the packets, headers included
	first, last byte   // sequence numbers
}

// readMessage reads up to and including the first packet that is not full.
func readMessage(r *bufio.Reader) (message, error) {
	var m message
	for {
		packet, err := readPacket(r)
		if err != nil {
			return m, err
		}

		if m.raw == nil {
			m.raw, m.first = packet, packet[3]
		} else {
			m.raw = append(m.raw, packet...)
		}

		m.last = packet[3]
		if len(packet) < headerSize+maxPayload {
			return m, nil
		}
	}
}

// payload returns the message without headers, up to the start of the second packet. No rule needs
// text after the first 16 MiB.
func (m message) payload() []byte {
	return m.raw[headerSize:min(len(m.raw), headerSize+maxPayload)]
}

// makeError builds an ERR packet.
func makeError(sequence byte, code uint16, sqlState, text string) []byte {
	payload := binary.LittleEndian.AppendUint16([]byte{0xff}, code)
	payload = append(payload, '#')
	payload = append(payload, (sqlState + "HY000")[:5]...)
	return makePacket(sequence, append(payload, text...))
}

// plainGreeting removes the capabilities that hide commands from a server's greeting, in place. The
// server may send an ERR instead (too many connections), which is left as it is.
func plainGreeting(packet []byte) {
	const versionTen = 10
	payload := packet[headerSize:]
	if len(payload) == 0 || payload[0] != versionTen {
		return
	}
	end := bytes.IndexByte(payload, 0) // of the server's version
	low := end + 1 + 4 + 8 + 1         // after the connection id, the first part of the salt and a filler
	high := low + 2 + 1 + 2            // after the lower capabilities, the character set and the status
	if end < 0 || len(payload) < high+2 {
		return
	}

	clear := func(at int, bits uint16) {
		flags := binary.LittleEndian.Uint16(payload[at:])
		binary.LittleEndian.PutUint16(payload[at:], flags&^bits)
	}
	clear(low, hidingCapabilities&0xffff)
	clear(high, hidingCapabilities>>16)
}
