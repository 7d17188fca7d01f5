package chaos

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// sameEverywhere says whether all members hold the same at the same revision.
func sameEverywhere(ctx context.Context, etcd *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	now, err := etcd.Get(ctx, "now")
	if err != nil {
		return err
	}
	revision := now.Header.Revision
	hashes := map[string]string{}
	values := map[string]bool{}
	for _, endpoint := range etcd.Endpoints() {
		answer, err := etcd.HashKV(ctx, endpoint, revision)
		if err != nil {
			return fmt.Errorf("hash of %s at revision %d: %w", endpoint, revision, err)
		}
		hashes[endpoint] = fmt.Sprintf("%x since %d", answer.Hash, answer.CompactRevision)
		values[hashes[endpoint]] = true
	}
	if len(values) != 1 {
		return fmt.Errorf("at revision %d the members hold %v", revision, hashes)
	}
	return nil
}

// kept says which answered writes below a prefix are not there as answered.
func kept(ctx context.Context, etcd *clientv3.Client, prefix string, acks []ack) error {
	ctx, cancel := context.WithTimeout(ctx, 6*askTimeout)
	defer cancel()
	answer, err := etcd.Get(ctx, prefix+"once/", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	there := map[string]ack{}
	for _, kv := range answer.Kvs {
		there[string(kv.Key)] = ack{string(kv.Key), string(kv.Value), kv.ModRevision}
	}
	var lost error
	for _, a := range acks {
		if there[a.key] != a {
			lost = errors.Join(lost, fmt.Errorf("%w: %+v was answered; there is %+v", errLost, a, there[a.key]))
		}
	}
	return lost
}

var errLost = errors.New("lost")
