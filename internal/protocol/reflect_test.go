package protocol

import "reflect"

func setRule(r *Rules, name string, to bool) { reflect.ValueOf(r).Elem().FieldByName(name).SetBool(to) }
