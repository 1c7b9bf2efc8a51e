package catalog

import "github.com/tutti-project/tutti/internal/fault"

// CountResources counts what an agent would apply of a stored document: all resources of its catalog but stages and
// classes, and none that are only exported or virtual.
func CountResources(document []byte) (n int, err error) {
	_, catalog, err := Split(document)
	if err != nil {
		return 0, fault.Wrap(fault.Internal, err, "count a catalog's resources")
	}
	for m := range Members(catalog) {
		if string(m.Name) != `"resources"` {
			continue
		}
		for _, resource := range Elements(m.Value) {
			if counts(resource) {
				n++
			}
		}
	}
	return n, nil
}

func counts(resource []byte) bool {
	for m := range Members(resource) {
		switch name, value := string(m.Name), string(m.Value); {
		case name == `"type"` && (value == `"Stage"` || value == `"Class"`), (name == `"exported"` || name == `"virtual"`) && value == "true":
			return false
		}
	}
	return true
}
