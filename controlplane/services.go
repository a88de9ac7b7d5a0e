package controlplane

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/adminclient"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/service"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
	"github.com/stormglass/stormglass/internal/atomicfile"
)

// writeServices writes the files that API servers and services share: keys, tokens, and the configurations with which
// they call each other.
func (p *Plane) writeServices(plan topology.Plan) error {
	cfg, keys := p.opts.Config, p.layout.PKI()
	if cfg.APIServer.BearsToken() {
		if err := keys.TokenKubeconfig(p.layout.Kubeconfig(pki.Loadgen), pki.Loadgen, plan.Server, keys.LoadToken()); err != nil {
			return err
		}
	}
	if cfg.APIServer.Authentication == control.AuthenticationWebhook {
		if err := atomicfile.Write(keys.LoadToken(), []byte(rand.Text())); err != nil {
			return err
		}
	}
	for kind, url := range plan.Webhooks() {
		if err := keys.Kubeconfig(p.layout.Kubeconfig(kind), pki.ServicesClient, url); err != nil {
			return err
		}
	}
	for _, api := range plan.Of(control.KindCloudAPI) {
		if err := keys.Kubeconfig(p.layout.CloudConfig(), pki.CloudControllers, api.Address); err != nil {
			return err
		}
		if err := keys.Kubeconfig(p.layout.Kubeconfig(pki.CloudControllers), pki.CloudControllers, plan.Server); err != nil {
			return err
		}
	}
	for _, issuer := range plan.Of(control.KindOIDCIssuer) {
		authority, err := keys.Authority(pki.ServerCA)
		if err != nil {
			return err
		}
		if err := atomicfile.Write(p.layout.Authentication(), topology.AuthenticationConfig(issuer.Address, authority)); err != nil {
			return err
		}
	}
	if cfg.APIServer.Authorization == control.AuthorizationABAC {
		if err := atomicfile.Write(p.layout.ABACPolicy(), topology.ABACPolicy(cfg)); err != nil {
			return err
		}
	}
	if plan.Authorization != nil {
		if err := atomicfile.Write(p.layout.Authorization(), plan.Authorization); err != nil {
			return err
		}
	}
	if !cfg.Encrypted() {
		return nil
	}
	key, err := keys.EncryptionKey()
	if err != nil {
		return err
	}
	for _, apiServer := range cfg.ComponentsOf(control.KindAPIServer) {
		if err := atomicfile.Write(p.layout.Encryption(apiServer), topology.EncryptionConfig(cfg, p.layout, apiServer, key)); err != nil {
			return err
		}
	}
	return nil
}

// launchServices starts the services that API servers call, all kinds at the same time.
func (p *Plane) launchServices(ctx context.Context, plan topology.Plan, client *adminclient.Client) error {
	group, starting := errgroup.WithContext(ctx)
	for _, kind := range control.KindsOf(control.StageServices) {
		if processes := plan.Of(kind); len(processes) > 0 {
			group.Go(func() error { return p.components.Launch(starting, processes) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, issuer := range plan.Of(control.KindOIDCIssuer) {
		if err := p.issueOIDCToken(ctx, client, issuer); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) issueOIDCToken(ctx context.Context, client *adminclient.Client, issuer topology.Process) error {
	token, err := client.Token(ctx, issuer)
	if err != nil {
		return err
	}
	return atomicfile.Write(p.layout.PKI().LoadToken(), token)
}

// tokenLife is the time for which the load's service account token is valid, in seconds. Each start issues a new token.
const tokenLife = service.TokenLife / time.Second

// issueBootstrapToken replaces the load's bootstrap token: a Secret in the namespace kube-system, like the tokens of
// kubeadm.
func (p *Plane) issueBootstrapToken(ctx context.Context, client *adminclient.Client) error {
	secret := strings.ToLower(rand.Text()[:16])
	if err := client.SetBootstrapToken(ctx, control.BootstrapTokenID, secret); err != nil {
		return fmt.Errorf("issue a bootstrap token for the load: %w", err)
	}
	return atomicfile.Write(p.layout.PKI().LoadToken(), []byte(control.BootstrapTokenID+"."+secret))
}

func (p *Plane) issueServiceAccountToken(ctx context.Context, client *adminclient.Client) error {
	if err := client.CreateServiceAccount(ctx, control.LoadUser); err != nil {
		return err
	}
	token, err := client.ServiceAccountToken(ctx, control.LoadUser, int64(tokenLife))
	if err != nil {
		return fmt.Errorf("issue a token for the load: %w", err)
	}
	return atomicfile.Write(p.layout.PKI().LoadToken(), []byte(token))
}
