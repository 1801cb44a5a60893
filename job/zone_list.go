package job

import (
	"slices"
	"strings"
)

// ZoneNames lists the names of the time zones that LoadZone knows of, in order: those of the IANA database.
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
