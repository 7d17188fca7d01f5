package release_test

import _ "github.com/etcdmanager/etcdmanager/api/v1alpha1" // want depguard
