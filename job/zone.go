package job

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for containers without zone files

	"go-crontab/job/problem"
)

// zones caches the results of LoadZone: at most a few hundred names, each read once.
var zones sync.Map // canonical name → *time.Location

// LoadZone returns the time zone of a name. A name is an IANA name such as Europe/Berlin in any
// case, a Windows name, or a common alias (see zoneAliases). "" means UTC. The location's String is
// the IANA name. LoadZone refuses names whose meaning depends on the machine, because all nodes
// must compute the same due times. It also refuses abbreviations that several zones share. The data
// of a zone comes from the system, or if the system has none, from the binary. It is read only
// once. No other function of this package opens a file.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}

	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil
	}

	switch typed := strings.ToLower(name); {
	case len(name) > maxZoneName:
		return nil, problem.Errorf(problem.ZoneUnknown, shorten(name))
	case typed == "local" || typed == "localtime" || typed == "posixrules":
		return nil, problem.Errorf(problem.ZoneLocal, name)
	case ambiguousZones[typed] != nil:
		return nil, problem.Errorf(problem.ZoneAmbiguous, name, orList(ambiguousZones[typed]))
	}

	if canonical := zoneName(name); canonical != "" {
		name = canonical
	}

	loc, ok := findZone(name)
	if !ok {
		if near := nearZones(name); near != nil {
			return nil, problem.Errorf(problem.ZoneNear, shorten(name), orList(near))
		}
		return nil, problem.Errorf(problem.ZoneUnknown, shorten(name))
	}

	if loc != time.UTC {
		zones.Store(name, loc)
	}

	return loc, nil
}

// canonicalZone returns the IANA name of a zone. An unknown name stays unchanged, and validation
// reports it.
func canonicalZone(name string) string {
	if name == "" {
		return ""
	}
	loc, err := LoadZone(name)
	if err != nil {
		return name
	}
	return loc.String()
}

const maxZoneName = 64 // bytes

func findZone(name string) (*time.Location, bool) {
	// posix and right are further copies of the zones that some systems have. The zones in right
	// count leap seconds, which we do not count.
	if area, _, _ := strings.Cut(strings.ToLower(name), "/"); area == "posix" || area == "right" {
		return nil, false
	}

	if name == "UTC" {
		return time.UTC, true
	}

	loc, err := time.LoadLocation(name)
	return loc, err == nil
}

// zoneNames maps the accepted spellings to zones, in lower case and without spaces.
var zoneNames = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for area, list := range zonesByArea {
		for name := range strings.FieldsSeq(list) {
			if area != "" {
				name = area + "/" + name
			}
			m[strings.ToLower(name)] = name
		}
	}
	for _, aliases := range []map[string]string{windowsZones, zoneAliases} {
		for alias, name := range aliases {
			m[typedZone(alias)] = name
		}
	}
	return m
})

// zoneName returns the IANA name of a typed name. For an unknown name it returns "".
func zoneName(typed string) string { return zoneNames()[typedZone(typed)] }

func typedZone(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), "_") }

// zoneAliases are common names of places without a zone of their own.
var zoneAliases = map[string]string{
	"Beijing": "Asia/Shanghai", "Asia/Beijing": "Asia/Shanghai", "Shenzhen": "Asia/Shanghai", "Asia/Shenzhen": "Asia/Shanghai",
	"Guangzhou": "Asia/Shanghai", "Asia/Guangzhou": "Asia/Shanghai", "China": "Asia/Shanghai",
	"Bangalore": "Asia/Kolkata", "Delhi": "Asia/Kolkata", "Asia/Delhi": "Asia/Kolkata", "Mumbai": "Asia/Kolkata", "Asia/Mumbai": "Asia/Kolkata", "India": "Asia/Kolkata",
	"Hanoi": "Asia/Ho_Chi_Minh", "Asia/Hanoi": "Asia/Ho_Chi_Minh", "Osaka": "Asia/Tokyo", "Asia/Osaka": "Asia/Tokyo",
	"Boston": "America/New_York", "Miami": "America/New_York", "Washington": "America/New_York", "Houston": "America/Chicago", "Dallas": "America/Chicago",
	"San Francisco": "America/Los_Angeles", "America/San_Francisco": "America/Los_Angeles", "Seattle": "America/Los_Angeles",
	"Frankfurt": "Europe/Berlin", "Europe/Frankfurt": "Europe/Berlin", "Hamburg": "Europe/Berlin", "Munich": "Europe/Berlin", "Europe/Munich": "Europe/Berlin",
	"Geneva": "Europe/Zurich", "Europe/Geneva": "Europe/Zurich", "Milan": "Europe/Rome", "Europe/Milan": "Europe/Rome", "Barcelona": "Europe/Madrid",
}

// ambiguousZones are abbreviations that several zones use. The IANA database does not define them.
var ambiguousZones = map[string][]string{
	"cst": {"America/Chicago", "Asia/Shanghai", "America/Havana"},
	"cdt": {"America/Chicago", "America/Havana"},
	"ist": {"Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"},
	"bst": {"Europe/London", "Asia/Dhaka"},
	"pst": {"America/Los_Angeles", "Asia/Manila"},
	"pdt": {"America/Los_Angeles", "America/Tijuana"},
	"edt": {"America/New_York", "America/Toronto"},
	"mdt": {"America/Denver", "America/Edmonton"},
	"ast": {"America/Halifax", "Asia/Riyadh"},
	"sst": {"Asia/Singapore", "Pacific/Pago_Pago"},
	"gst": {"Asia/Dubai", "Pacific/Guam"},
	"amt": {"America/Manaus", "Asia/Yerevan"},
	"ect": {"America/Guayaquil", "Europe/Paris"},

	"cest": {"Europe/Berlin", "Europe/Paris"},
	"eest": {"Europe/Athens", "Europe/Helsinki"},
	"aest": {"Australia/Sydney", "Australia/Brisbane"},
	"aedt": {"Australia/Sydney", "Australia/Melbourne"},
}

// nearZones returns names that are similar to a typed name: the same city with its right area, a
// fixed offset, or a name with a few other letters.
func nearZones(name string) []string {
	typed := typedZone(name)
	if near := offsetZone(typed); near != "" {
		return []string{near}
	}

	city := typed[strings.LastIndexByte(typed, '/')+1:]
	var same, like []string
	most := min(2, len(typed)/4) // wrong letters allowed
	for key, canonical := range zoneNames() {
		switch {
		case key == city || strings.HasSuffix(key, "/"+city):
			same = append(same, canonical)
		case most > 0 && within(key, typed, most):
			like = append(like, canonical)
		}
	}

	if same == nil {
		same = like
	}

	slices.Sort(same)
	same = slices.Compact(same)
	return same[:min(len(same), 3)]
}

// offsetZone returns the IANA name of a fixed offset such as utc+8. For another text it returns "".
// IANA names have the opposite sign.
func offsetZone(typed string) string {
	for _, prefix := range []string{"utc", "gmt"} {
		rest, ok := strings.CutPrefix(typed, prefix)
		if !ok || rest == "" || rest[0] != '+' && rest[0] != '-' {
			continue
		}
		hours, ok := number(strings.TrimSuffix(rest[1:], ":00"))
		sign := map[byte]string{'+': "-", '-': "+"}[rest[0]]
		if name := fmt.Sprintf("Etc/GMT%s%d", sign, hours); ok && hours > 0 && zoneName(name) != "" {
			return name
		}
	}

	return ""
}

// within reports whether the edit distance of two texts is at most most.
func within(a, b string, most int) bool {
	if max(len(a), len(b))-min(len(a), len(b)) > most {
		return false
	}

	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range a {
		corner := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range b {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
			least = min(least, row[j+1])
		}
		if least > most {
			return false
		}
	}

	return row[len(b)] <= most
}

func orList(list []string) string { return strings.Join(list, " or ") }
