// Package datadir judges etcd's data directory from its files, without starting
// etcd: whether there is data, and whose. It changes nothing and may import
// nothing of etcd.
package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Kind is what a look at the files alone can tell.
type Kind int

// Kinds of Content.
const (
	Absent     Kind = iota // no directory
	Empty                  // a directory without a member in it
	Partial                // a member without its log or its database, or with a log that was never used: half made or half restored (F080)
	Whole                  // log and database are there, and the IDs could be read
	Unreadable             // there is something, and it could not be understood
)

// Content is what is in a data directory.
type Content struct {
	Kind Kind
	// MemberID and ClusterID in hex, when Whole.
	MemberID, ClusterID string
	// WAL tells this log from one that took its place: the inode of its
	// directory, when Whole.
	WAL uint64
	// Dir is the inode of the data directory, unless Absent.
	Dir uint64
	// Problem says what is wrong, when Partial or Unreadable.
	Problem string
}

// Look reads the data directory dir.
func Look(dir string) Content {
	inode, err := inodeOf(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Content{Kind: Absent}
	case err != nil:
		return Content{Kind: Unreadable, Problem: err.Error()}
	}
	content := look(dir)
	content.Dir = inode
	return content
}

func look(dir string) Content {
	member := filepath.Join(dir, "member")
	if _, err := os.Lstat(member); errors.Is(err, os.ErrNotExist) {
		return Content{Kind: Empty}
	}
	segment, single, err := firstSegment(filepath.Join(member, "wal"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Content{Kind: Partial, Problem: "there is a member without a write-ahead log"}
	case err != nil:
		return Content{Kind: Unreadable, Problem: err.Error()}
	}
	database := filepath.Join(member, "snap", "db")
	if _, err := os.Stat(database); errors.Is(err, os.ErrNotExist) {
		return Content{Kind: Partial, Problem: "there is a write-ahead log without a database"}
	}
	found, used, err := readHead(segment)
	switch {
	case err != nil:
		return Content{Kind: Unreadable, Problem: err.Error()}
	case single && !used:
		// etcd killed at this point of its first start would find a log, take
		// itself for a member of long standing that knows no other, and run
		// for ever without serving.
		return Content{Kind: Partial, Problem: "there is a write-ahead log with nothing in it"}
	}
	wal, err := inodeOf(filepath.Join(member, "wal"))
	if err != nil {
		return Content{Kind: Unreadable, Problem: err.Error()}
	}
	return Content{Kind: Whole, MemberID: Hex(found.member), ClusterID: Hex(found.cluster), WAL: wal}
}

// firstSegment is the oldest segment, as etcd removes old ones as it goes, and
// whether it is the first and only one.
func firstSegment(wal string) (path string, single bool, err error) {
	entries, err := os.ReadDir(wal)
	if err != nil {
		return "", false, err
	}
	var segments []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".wal") {
			segments = append(segments, e.Name())
		}
	}
	if len(segments) == 0 {
		return "", false, fmt.Errorf("no segment in %s: %w", wal, os.ErrNotExist)
	}
	return filepath.Join(wal, segments[0]), len(segments) == 1 && strings.HasPrefix(segments[0], firstSequence), nil
}

// firstSequence begins the name of the first segment of a log.
const firstSequence = "0000000000000000-"

func inodeOf(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("%s: the file system tells no inode", path)
	}
	return stat.Ino, nil
}

// Hex writes an ID as etcdctl does.
func Hex(id uint64) string { return strconv.FormatUint(id, 16) }
