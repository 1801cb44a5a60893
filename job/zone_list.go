package job

import (
	"slices"
	"strings"
)

// ZoneNames lists the IANA names that LoadZone knows, sorted.
func ZoneNames() []string {
	names := []string{}
	for area, list := range zonesByArea {
		for name := range strings.FieldsSeq(list) {
			if area != "" {
				name = area + "/" + name
			}
			names = append(names, name)
		}
	}

	slices.Sort(names)
	return names
}
