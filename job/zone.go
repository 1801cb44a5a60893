package job

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // so that a bare container knows the zones
)

// zones keeps what LoadZone found: a few hundred names at most, each read once.
var zones sync.Map // name → *time.Location

// LoadZone returns the time zone of an IANA name such as Europe/Berlin; "" means UTC. Names whose meaning depends
// on the machine are refused: each node must compute the same due times. The zone's data comes from the system,
// or else from the binary, and stays as it was first read: the only file that this package ever opens.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if strings.EqualFold(name, "local") || name == "localtime" || name == "posixrules" {
		return nil, fmt.Errorf("time zone %q: differs from machine to machine; name the zone, such as Europe/Berlin", name)
	}
	loc, ok := findZone(name)
	if !ok {
		if near := nearZones(name); near != nil {
			return nil, fmt.Errorf("time zone %q: unknown; did you mean %s?", shorten(name), strings.Join(near, " or "))
		}
		return nil, fmt.Errorf("time zone %q: unknown; want an IANA name such as Europe/Berlin", shorten(name))
	}
	zones.Store(name, loc)
	return loc, nil
}

func findZone(name string) (*time.Location, bool) {
	// These two are second copies that some systems have. The latter counts leap seconds, which we don't.
	if len(name) > 64 || strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		return nil, false
	}
	loc, err := time.LoadLocation(name)
	return loc, err == nil
}

// nearZones tries what people type for a zone: another case, a space, a city without its area or in a wrong one.
func nearZones(name string) (near []string) {
	title := []byte(strings.ToLower(strings.ReplaceAll(name, " ", "_")))
	for i, b := range title {
		if 'a' <= b && b <= 'z' && (i == 0 || strings.IndexByte("/_-", title[i-1]) >= 0) {
			title[i] = b - 'a' + 'A'
		}
	}
	city := string(title[strings.LastIndexByte(string(title), '/')+1:])
	if city == "Beijing" {
		city = "Shanghai"
	}
	candidates := []string{string(title), strings.ToUpper(name)}
	for _, area := range []string{"Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"} {
		candidates = append(candidates, area+"/"+city)
	}
	for _, candidate := range candidates {
		if _, ok := findZone(candidate); ok && candidate != "" && candidate != "LOCAL" && !slices.Contains(near, candidate) {
			near = append(near, candidate)
		}
	}
	return near
}
