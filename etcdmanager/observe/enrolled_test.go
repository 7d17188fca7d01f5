package observe

import (
	"testing"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// TestEnrolmentCutOff tells an enrolment that ended before the machine was
// told anything, which is done again, from machines that are to be left alone.
func TestEnrolmentCutOff(t *testing.T) {
	told := &protocol.Wanted{Name: "m"}
	for name, c := range map[string]struct {
		seen protocol.Seen
		want bool
	}{
		"first contact":        {protocol.Seen{Data: protocol.Data{State: protocol.DataEmpty}}, false},
		"not told anything":    {protocol.Seen{Enrolled: true, Data: protocol.Data{State: protocol.DataEmpty}}, false},
		"told its release":     {protocol.Seen{Enrolled: true, Wanted: told, Data: protocol.Data{State: protocol.DataEmpty}}, true},
		"with a member's data": {protocol.Seen{Enrolled: true, Data: protocol.Data{State: protocol.DataPresent}}, true},
		"its data was lost":    {protocol.Seen{Enrolled: true, Data: protocol.Data{State: protocol.DataLost}}, true},
		"etcd runs":            {protocol.Seen{Enrolled: true, Process: protocol.Process{Running: true}, Data: protocol.Data{State: protocol.DataEmpty}}, true},
		"fenced":               {protocol.Seen{Enrolled: true, Fenced: true, Data: protocol.Data{State: protocol.DataEmpty}}, true},
	} {
		if got := enrolled(&c.seen); got != c.want {
			t.Errorf("%s: enrolled %t, want %t", name, got, c.want)
		}
	}
}
