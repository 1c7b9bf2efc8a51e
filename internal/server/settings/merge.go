package settings

import "reflect"

// Merge takes from fresh the settings that may change while running. waiting
// names the others that differ.
func Merge(old, fresh Config) (applied Config, waiting []string) {
	applied = old
	to, from := reflect.ValueOf(&applied).Elem(), reflect.ValueOf(fresh)
	for field, value := range from.Fields() {
		target := to.FieldByIndex(field.Index)
		switch {
		case reflect.DeepEqual(target.Interface(), value.Interface()):
		case field.Tag.Get("reload") != "":
			target.Set(value)
		default:
			waiting = append(waiting, field.Tag.Get("koanf"))
		}
	}
	return applied, waiting
}
