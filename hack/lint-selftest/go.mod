module github.com/etcdmanager/etcdmanager

go 1.26.0
