package job

import (
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"sync"
	"time"
)

// Two sets of time zone data differ if offsets differ in these years. The years are constants, so
// they are equal on all nodes. From 2038 on all data follows the rules of 2037.
var zoneDataFrom, zoneDataTo = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC)

// ZoneData is a fingerprint of this process's time zone data. Two processes have the same
// fingerprint if all zones have equal offsets from 2020 to 2037, whatever files they come from.
// ZoneData reads all zones, which then stay loaded (see LoadZone). The first call takes some tens
// of milliseconds.
var ZoneData = sync.OnceValue(func() string {
	h := fnv.New64a()
	for _, name := range ZoneNames() {
		h.Write([]byte(name))
		if zone, err := LoadZone(name); err == nil {
			h.Write(offsets(zone))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
})

// offsets encodes the offsets of a zone, and the instants at which they change.
func offsets(zone *time.Location) []byte {
	var b []byte
	was := -1
	for at := zoneDataFrom.In(zone); at.Before(zoneDataTo); {
		if _, offset := at.Zone(); offset != was {
			was = offset
			b = binary.BigEndian.AppendUint64(b, uint64(at.Unix()))
			b = binary.BigEndian.AppendUint32(b, uint32(int32(offset)))
		}
		_, end := at.ZoneBounds()
		switch {
		case end.IsZero():
			return b
		case !end.After(at): // package time returns this on the last day of leap years
			at = at.Add(24 * time.Hour)
		default:
			at = end
		}
	}

	return b
}
