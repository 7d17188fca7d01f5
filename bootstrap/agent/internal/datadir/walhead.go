package datadir

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"google.golang.org/protobuf/encoding/protowire"
)

// Every segment of the write-ahead log starts with a checksum record, then the
// metadata record with the IDs, then the raft state; this layout is the same in
// etcd 3.5, 3.6 and 3.7 (server/storage/wal). Reading that head takes a page,
// where etcd's own package reads the log to its end.
const (
	recordMetadata = 1
	recordCRC      = 4
	recordSnapshot = 5
	maxHeadRecord  = 64 << 10 // bytes; a metadata record has about 20
)

var (
	errDamaged = errors.New("the head of the write-ahead log is damaged")
	errEnd     = errors.New("the write-ahead log ends")
	errLarge   = errors.New("the record is larger than those of the head")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ids are the member's and the cluster's, as etcd's metadata record has them.
type ids struct{ member, cluster uint64 }

type record struct {
	kind uint64
	crc  uint32
	data []byte
}

// readHead reads the IDs, and whether the segment has anything after its head:
// an entry or a vote.
func readHead(path string) (found ids, used bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return ids{}, false, err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, 4096)
	found, err = readIDs(r)
	if err == nil {
		used, err = readUse(r)
	}
	if err != nil {
		return ids{}, false, fmt.Errorf("%s: %w", path, err)
	}
	return found, used, nil
}

func readIDs(r io.Reader) (ids, error) {
	first, err := readRecord(r)
	if err != nil {
		return ids{}, damage(err)
	}
	second, err := readRecord(r)
	if err != nil {
		return ids{}, damage(err)
	}
	if first.kind != recordCRC || second.kind != recordMetadata ||
		crc32.Update(first.crc, castagnoli, second.data) != second.crc {
		return ids{}, errDamaged
	}
	return parseIDs(second.data)
}

// readUse goes on behind the metadata. A new log has a record of the empty
// snapshot there, and then the zeros of the space allocated for it.
func readUse(r io.Reader) (bool, error) {
	for {
		rec, err := readRecord(r)
		switch {
		case errors.Is(err, errEnd):
			return false, nil
		case errors.Is(err, errLarge), errors.Is(err, errDamaged):
			return true, nil // etcd's own matter, which repairs the last record
		case err != nil:
			return false, err
		case rec.kind != recordSnapshot:
			return true, nil
		}
	}
}

// readRecord reads one frame: its length in the low 56 bits of a little-endian
// word, the padding in the low three bits of the top byte, then the record.
func readRecord(r io.Reader) (record, error) {
	var word [8]byte
	if _, err := io.ReadFull(r, word[:]); err != nil {
		return record{}, ended(err, errEnd)
	}
	frame := binary.LittleEndian.Uint64(word[:])
	length := frame & (1<<56 - 1)
	switch {
	case length == 0:
		return record{}, errEnd
	case length > maxHeadRecord:
		return record{}, errLarge
	}
	padding := uint64(0)
	if frame>>63 == 1 {
		padding = frame >> 56 & 0x7
	}
	raw := make([]byte, length+padding)
	if _, err := io.ReadFull(r, raw); err != nil {
		return record{}, ended(err, errDamaged)
	}
	return parseRecord(raw[:length])
}

// ended tells the end of the file from a disk that cannot be read.
func ended(err, meaning error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return meaning
	}
	return err
}

// damage is what an early end or an absurd length is in the head.
func damage(err error) error {
	if errors.Is(err, errEnd) || errors.Is(err, errLarge) {
		return errDamaged
	}
	return err
}

func parseRecord(raw []byte) (record, error) {
	var rec record
	err := eachField(raw, func(number protowire.Number, varint uint64, bytes []byte) {
		switch number {
		case 1:
			rec.kind = varint
		case 2:
			rec.crc = uint32(varint) //nolint:gosec // a uint32 on the wire
		case 3:
			rec.data = bytes
		}
	})
	return rec, err
}

func parseIDs(raw []byte) (ids, error) {
	var found ids
	err := eachField(raw, func(number protowire.Number, varint uint64, _ []byte) {
		switch number {
		case 1:
			found.member = varint
		case 2:
			found.cluster = varint
		}
	})
	if err == nil && (found.member == 0 || found.cluster == 0) {
		err = errDamaged
	}
	return found, err
}

func eachField(raw []byte, visit func(number protowire.Number, varint uint64, bytes []byte)) error {
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return errDamaged
		}
		raw = raw[n:]
		var varint uint64
		var bytes []byte
		switch kind {
		case protowire.VarintType:
			varint, n = protowire.ConsumeVarint(raw)
		case protowire.BytesType:
			bytes, n = protowire.ConsumeBytes(raw)
		default:
			n = protowire.ConsumeFieldValue(number, kind, raw)
		}
		if n < 0 {
			return errDamaged
		}
		visit(number, varint, bytes)
		raw = raw[n:]
	}
	return nil
}
