package job

import (
	"log/slog"
	"time"
)

// Micros is an instant in microseconds since 1970-01-01 UTC on MySQL's clock. All instants are
// stored in this form, because MySQL rounds and MariaDB truncates fractions of DATETIME columns.
// Zero means "no instant".
type Micros int64

// MicrosOf converts t, truncated to microseconds. The zero time becomes zero.
func MicrosOf(t time.Time) Micros {
	if t.IsZero() {
		return 0
	}
	return Micros(t.UnixMicro())
}

// Time converts to a UTC time. Zero becomes the zero time.
func (m Micros) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}

// Add returns m+d, with d truncated to microseconds.
func (m Micros) Add(d time.Duration) Micros { return m + Micros(d/time.Microsecond) }

// Sub returns m-n.
func (m Micros) Sub(n Micros) time.Duration { return time.Duration(m-n) * time.Microsecond }

// LogValue makes log lines show String, in any format.
func (m Micros) LogValue() slog.Value { return slog.StringValue(m.String()) }

// String formats the instant as RFC 3339, without zeros at the end of the fraction. For no instant
// it returns "-".
func (m Micros) String() string {
	if m == 0 {
		return "-"
	}
	return m.Time().Format("2006-01-02T15:04:05.999999Z07:00")
}
