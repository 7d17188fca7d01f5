package controllers

import (
	"testing"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

func TestRounded(t *testing.T) {
	for bytes, want := range map[int64]string{1: "1Mi", 1 << 20: "1Mi", 1<<20 + 1: "2Mi", 3 << 30: "3Gi"} {
		if got := rounded(bytes); got != want {
			t.Errorf("%d bytes are %s, want %s", bytes, got, want)
		}
	}
}

func TestMachinePhase(t *testing.T) {
	reached := plan.Agent{Reachable: true}
	enrolled := plan.Agent{Reachable: true, Enrolled: true}
	declared := plan.Agent{Reachable: true, Enrolled: true, Declared: true}
	for _, c := range []struct {
		want   string
		m      plan.Machine
		member v1alpha1.MemberStatus
	}{
		{"Pending", plan.Machine{}, v1alpha1.MemberStatus{}},
		{"Pending", plan.Machine{Requested: true, Instance: plan.InstancePending}, v1alpha1.MemberStatus{}},
		{"Provisioned", plan.Machine{Requested: true, Agent: reached}, v1alpha1.MemberStatus{}},
		{"Enrolled", plan.Machine{Requested: true, Agent: enrolled}, v1alpha1.MemberStatus{}},
		{"Joining", plan.Machine{Requested: true, Agent: declared}, v1alpha1.MemberStatus{}},
		{"Joining", plan.Machine{Requested: true, Agent: declared, Serving: true}, v1alpha1.MemberStatus{Learner: true}},
		{"Running", plan.Machine{Requested: true, Agent: declared, Serving: true}, v1alpha1.MemberStatus{}},
		{"Unreachable", plan.Machine{Requested: true}, v1alpha1.MemberStatus{}},
		{"Gone", plan.Machine{Requested: true, Instance: plan.InstanceGone}, v1alpha1.MemberStatus{}},
		{"Leaving", plan.Machine{Requested: true, Deleting: true, Serving: true}, v1alpha1.MemberStatus{}},
	} {
		if got := machinePhase(c.m, c.member); got != c.want {
			t.Errorf("%+v is %s, want %s", c.m, got, c.want)
		}
	}
}
