package job

import (
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"sync"
	"time"
)

// The years whose offsets tell time zone data apart. They are the same for all nodes, whenever these were started. From 2038 on all data
// goes by the rules of 2037.
var zoneDataFrom, zoneDataTo = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC)

// ZoneData is a fingerprint of the time zone data that this process computes with: that of another is the same if all zones have the
// same offsets from 2020 to 2037, whatever files they are from. It reads all zones, which then stay as they are, see LoadZone, and takes
// some tens of milliseconds the first time.
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

// offsets says since when a zone has had which offset.
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
		case !end.After(at): // package time says so on the last day of leap years
			at = at.Add(24 * time.Hour)
		default:
			at = end
		}
	}
	return b
}
