// What the construct adds to a function, as CloudFormation sees it. Needs no built extension: any folder will do.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { after, test } from 'node:test';

import { App, Duration, Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import * as dynamodb from 'aws-cdk-lib/aws-dynamodb';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import * as sqs from 'aws-cdk-lib/aws-sqs';

import { Feature, Leasehold, type LockOptions } from '../lib/leasehold';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'leasehold-cdk-'));
fs.writeFileSync(path.join(folder, 'leasehold'), 'in place of the extension\n');
after(() => fs.rmSync(folder, { recursive: true }));

function placeholder(): lambda.Code {
  return lambda.Code.fromAsset(folder);
}

function stack(): Stack {
  return new Stack(new App(), 'Test');
}

function existing(scope: Stack, id = 'Function', more: Partial<lambda.FunctionProps> = {}): lambda.Function {
  return new lambda.Function(scope, id, {
    runtime: lambda.Runtime.PROVIDED_AL2023,
    architecture: lambda.Architecture.ARM_64,
    handler: 'bootstrap',
    code: placeholder(),
    timeout: Duration.seconds(30),
    ...more,
  });
}

function locked(options?: LockOptions): Template {
  const scope = stack();
  new Leasehold(scope, 'Leasehold', { extension: { arm64: placeholder() } }).lock(existing(scope), options);
  return Template.fromStack(scope);
}

function actions(template: Template): string[] {
  const policies = Object.values(template.findResources('AWS::IAM::Policy'));
  return policies.flatMap((policy) => policy.Properties.PolicyDocument.Statement.flatMap((it: { Action: string[] }) => it.Action));
}

test('the table is a lock table that is not deleted by accident', () => {
  const template = locked();
  template.hasResource('AWS::DynamoDB::Table', {
    DeletionPolicy: 'Retain',
    UpdateReplacePolicy: 'Retain',
    Properties: {
      AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
      BillingMode: 'PAY_PER_REQUEST',
      TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
      DeletionProtectionEnabled: true,
    },
  });
});

test('one call gives a function the layer, the table and two actions', () => {
  const template = locked({ environment: { LEASEHOLD_NAMESPACE: 'billing' } });
  const [table] = Object.keys(template.findResources('AWS::DynamoDB::Table'));
  const [layer] = Object.keys(template.findResources('AWS::Lambda::LayerVersion'));
  template.hasResourceProperties('AWS::Lambda::Function', {
    Layers: [{ Ref: layer }],
    Environment: { Variables: { LEASEHOLD_TABLE: { Ref: table }, LEASEHOLD_NAMESPACE: 'billing' } },
  });
  template.hasResourceProperties('AWS::IAM::Policy', {
    PolicyDocument: {
      Statement: [
        {
          Action: ['dynamodb:UpdateItem', 'dynamodb:GetItem'],
          Effect: 'Allow',
          Resource: [{ 'Fn::GetAtt': [table, 'Arn'] }],
        },
      ],
    },
  });
});

test('each feature adds its actions and no others', () => {
  const leases = ['dynamodb:UpdateItem', 'dynamodb:GetItem'];
  const added = (features: Feature[]) => actions(locked({ features })).filter((action) => !leases.includes(action));
  assert.deepEqual(added([]), []);
  assert.deepEqual(added([Feature.GuardedTransactions]), ['dynamodb:ConditionCheckItem']);
  assert.deepEqual(added([Feature.State]), ['dynamodb:ConditionCheckItem']);
  assert.deepEqual(added([Feature.Pydynox]), ['dynamodb:PutItem', 'dynamodb:DeleteItem']);
});

test('functions of one architecture share a layer, and a missing one is told with its command', () => {
  const scope = stack();
  const locks = new Leasehold(scope, 'Leasehold', { extension: { arm64: placeholder() } });
  locks.lock(existing(scope, 'One'));
  locks.lock(existing(scope, 'Two'));
  const intel = existing(scope, 'Intel', { architecture: lambda.Architecture.X86_64 });
  assert.throws(() => locks.lock(intel), /cargo lambda build .*--x86-64.*extension\.x86_64/);
  const template = Template.fromStack(scope);
  template.resourceCountIs('AWS::Lambda::LayerVersion', 1);
  template.hasResourceProperties('AWS::Lambda::LayerVersion', { CompatibleArchitectures: ['arm64'] });
});

test('mappings report failures, whether they were added before or after', () => {
  const scope = stack();
  const fn = existing(scope);
  const source = (id: string) =>
    new SqsEventSource(new sqs.Queue(scope, id, { visibilityTimeout: Duration.minutes(3) }));
  const other = existing(scope, 'WithoutLocks');
  other.addEventSource(source('Other'));
  fn.addEventSource(source('Before'));
  new Leasehold(scope, 'Leasehold', { extension: { arm64: placeholder() } }).lock(fn, { perRecord: true });
  fn.addEventSource(source('After'));
  const template = Template.fromStack(scope);
  const reporting = { Properties: { FunctionResponseTypes: ['ReportBatchItemFailures'] } };
  assert.equal(Object.keys(template.findResources('AWS::Lambda::EventSourceMapping')).length, 3);
  assert.equal(Object.keys(template.findResources('AWS::Lambda::EventSourceMapping', reporting)).length, 2);
});

test('a table of your own is used and no other is made', () => {
  const scope = stack();
  const table = dynamodb.Table.fromTableName(scope, 'Existing', 'locks');
  const locks = new Leasehold(scope, 'Leasehold', { extension: { arm64: placeholder() }, table });
  locks.lock(existing(scope));
  const template = Template.fromStack(scope);
  template.resourceCountIs('AWS::DynamoDB::Table', 0);
  template.hasResourceProperties('AWS::Lambda::Function', { Environment: { Variables: { LEASEHOLD_TABLE: 'locks' } } });
});

test("Lambda's default timeout is warned of", () => {
  const warnings = (timeout: Duration | undefined) => {
    const scope = stack();
    new Leasehold(scope, 'Leasehold', { extension: { arm64: placeholder() } }).lock(existing(scope, 'Function', { timeout }));
    return Annotations.fromStack(scope).findWarning('*', Match.stringLikeRegexp('longer than the layer')).length;
  };
  assert.equal(warnings(undefined), 1);
  assert.equal(warnings(Duration.seconds(3)), 1);
  assert.equal(warnings(Duration.seconds(30)), 0);
});
