package datadir

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// What real releases of etcd write is read in the agent's own tests; here are
// the ways in which it can be damaged.

func frame(kind uint64, crc uint32, data []byte) []byte {
	rec := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), kind)
	rec = protowire.AppendVarint(protowire.AppendTag(rec, 2, protowire.VarintType), uint64(crc))
	if data != nil {
		rec = protowire.AppendBytes(protowire.AppendTag(rec, 3, protowire.BytesType), data)
	}
	padding := (8 - len(rec)%8) % 8
	word := uint64(len(rec))
	if padding > 0 {
		word |= uint64(0x80|padding) << 56 //nolint:gosec // at most 7
	}
	return append(binary.LittleEndian.AppendUint64(nil, word), append(rec, make([]byte, padding)...)...)
}

func head(member, cluster uint64, crc uint32) []byte {
	ids := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), member)
	ids = protowire.AppendVarint(protowire.AppendTag(ids, 2, protowire.VarintType), cluster)
	return append(frame(recordCRC, crc, nil), frame(recordMetadata, crc32.Update(crc, castagnoli, ids), ids)...)
}

func write(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLook(t *testing.T) {
	good := head(0xdeadbeefdeadbeef, 0x1, 77)
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-9] ^= 1
	newborn := append(append([]byte(nil), good...), frame(recordSnapshot, 0, []byte{})...)
	newborn = append(newborn, make([]byte, 4096)...)
	used := append(append([]byte(nil), newborn[:len(newborn)-4096]...), frame(2, 0, make([]byte, 100))...)
	large := append(append([]byte(nil), newborn[:len(newborn)-4096]...), frame(2, 0, make([]byte, 1<<20))...)
	const zeroth = "0000000000000000-0000000000000000.wal"
	const second = "0000000000000003-00000000000004d2.wal"
	const first = "0000000000000001-0000000000000001.wal"
	for name, c := range map[string]struct {
		files map[string][]byte
		want  Content
	}{
		"whole":             {map[string][]byte{"wal/" + second: good, "snap/db": {}}, Content{Kind: Whole, MemberID: "deadbeefdeadbeef", ClusterID: "1"}},
		"two segments":      {map[string][]byte{"wal/" + second: nil, "wal/" + first: good, "snap/db": {}}, Content{Kind: Whole, MemberID: "deadbeefdeadbeef", ClusterID: "1"}},
		"never used":        {map[string][]byte{"wal/" + zeroth: newborn, "snap/db": {}}, Content{Kind: Partial}},
		"just used":         {map[string][]byte{"wal/" + zeroth: used, "snap/db": {}}, Content{Kind: Whole, MemberID: "deadbeefdeadbeef", ClusterID: "1"}},
		"a large entry":     {map[string][]byte{"wal/" + zeroth: large, "snap/db": {}}, Content{Kind: Whole, MemberID: "deadbeefdeadbeef", ClusterID: "1"}},
		"no database":       {map[string][]byte{"wal/" + first: good}, Content{Kind: Partial}},
		"no log (F080)":     {map[string][]byte{"snap/db": {}}, Content{Kind: Partial}},
		"no segment":        {map[string][]byte{"wal/0.tmp": good, "snap/db": {}}, Content{Kind: Partial}},
		"preallocated only": {map[string][]byte{"wal/" + first: make([]byte, 4096), "snap/db": {}}, Content{Kind: Unreadable}},
		"cut short":         {map[string][]byte{"wal/" + first: good[:len(good)-9], "snap/db": {}}, Content{Kind: Unreadable}},
		"a bit flipped":     {map[string][]byte{"wal/" + first: flipped, "snap/db": {}}, Content{Kind: Unreadable}},
		"no IDs":            {map[string][]byte{"wal/" + first: head(0, 0, 0), "snap/db": {}}, Content{Kind: Unreadable}},
		"absurd length":     {map[string][]byte{"wal/" + first: {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, "snap/db": {}}, Content{Kind: Unreadable}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, raw := range c.files {
				write(t, filepath.Join(dir, "member", path), raw)
			}
			got := Look(dir)
			if got.Kind != c.want.Kind || got.MemberID != c.want.MemberID || got.ClusterID != c.want.ClusterID {
				t.Errorf("got %+v", got)
			}
			if (got.Problem != "") != (got.Kind == Partial || got.Kind == Unreadable) || (got.WAL != 0) != (got.Kind == Whole) || got.Dir == 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
	dir := t.TempDir()
	if got := Look(dir); got.Kind != Empty || got.Dir == 0 {
		t.Errorf("empty: %+v", got)
	}
	if got := Look(filepath.Join(dir, "none")); got.Kind != Absent {
		t.Errorf("absent: %+v", got)
	}
}

func FuzzReadHead(f *testing.F) {
	f.Add(head(1, 2, 3))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "x.wal")
		write(t, path, raw)
		if found, _, err := readHead(path); err == nil && (found.member == 0 || found.cluster == 0) {
			t.Errorf("read %+v", found)
		}
	})
}
