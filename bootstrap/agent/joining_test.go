package agent

import (
	"testing"
	"time"
)

func TestWaitsInVain(t *testing.T) {
	at := func(seconds int) string {
		return time.Date(2030, 1, 1, 0, 0, seconds, 0, time.UTC).Format("2006-01-02T15:04:05.000Z0700")
	}
	line := func(seconds int, msg string) string {
		return `{"level":"info","ts":"` + at(seconds) + `","msg":"` + msg + `"}` + "\n"
	}
	begun := line(0, startMark)
	for _, c := range []struct {
		name         string
		log          string
		vain, serves bool
	}{
		{"still without a snapshot", begun + line(1, "peer became active"), false, false},
		{"snapshot long applied", begun + line(1, "applied snapshot"), true, false},
		{"snapshot just applied", begun + line(5, "applied snapshot"), false, false},
		{"serves", begun + line(1, "applied snapshot") + line(2, "ready to serve client requests"), false, true},
		{"another run served", line(0, "ready to serve client requests") + begun + line(1, "applied snapshot"), true, false},
		{"another run had the snapshot", line(0, "applied snapshot") + begun, false, false},
		{"lines that are none", begun + "panic: x\n" + line(1, "applied snapshot") + "{", true, false},
	} {
		now := time.Date(2030, 1, 1, 0, 0, 5, 0, time.UTC)
		if vain, serves := waitsInVain([]byte(c.log), now); vain != c.vain || serves != c.serves {
			t.Errorf("%s: vain %t, serves %t; want %t, %t", c.name, vain, serves, c.vain, c.serves)
		}
	}
	zone := `{"ts":"2030-01-01T02:00:04.900+0200","msg":"applied snapshot"}` + "\n"
	if vain, _ := waitsInVain([]byte(zone), time.Date(2030, 1, 1, 0, 0, 5, 0, time.UTC)); vain {
		t.Error("a time of another zone is taken for one of long ago")
	}
}
