// leasehold's lock table and extension, for functions that exist already: `lock` gives one all that it needs.

import { Annotations, Aspects, RemovalPolicy } from 'aws-cdk-lib';
import * as dynamodb from 'aws-cdk-lib/aws-dynamodb';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { Construct, type IConstruct } from 'constructs';

/** What a function needs beside leases. Each is a set of actions on the lock table, and no more. */
export enum Feature {
  /** `Lease::guard_transaction` and `Lease::condition_check`. */
  GuardedTransactions,
  /** State from holder to holder. */
  State,
  /** The row format that is shared with pydynox. */
  Pydynox,
}

// TransactWriteItems has no action of its own: IAM asks for those of the operations in it.
const ACTIONS: Record<Feature, string[]> = {
  [Feature.GuardedTransactions]: ['dynamodb:ConditionCheckItem'],
  [Feature.State]: ['dynamodb:ConditionCheckItem'],
  [Feature.Pydynox]: ['dynamodb:PutItem', 'dynamodb:DeleteItem'],
};

/** The extension's zip for each architecture, as `cargo lambda build --extension --output-format zip` makes it. */
export interface ExtensionCode {
  readonly arm64?: lambda.Code;
  readonly x86_64?: lambda.Code;
}

export interface LeaseholdProps {
  /** The extension, for the architectures of the functions that lock. */
  readonly extension: ExtensionCode;
  /** A lock table that exists. Without it one is made, which outlives the stack. */
  readonly table?: dynamodb.ITable;
}

export interface LockOptions {
  /** Settings as the README's table names them, `LEASEHOLD_NAMESPACE` and the like. */
  readonly environment?: Readonly<Record<`LEASEHOLD_${string}`, string>>;
  /** What the function does beside holding leases. */
  readonly features?: readonly Feature[];
  /**
   * The function locks each record of a batch (`per_record(ReportBatchItemFailures)`): sets that flag on all of its event
   * source mappings, whenever they are added. Without it Lambda deletes what the function reports as failed.
   */
  readonly perRecord?: boolean;
}

/** A lock table, and the extension as a layer. */
export class Leasehold extends Construct {
  /** The lock table. */
  readonly table: dynamodb.ITable;
  private readonly layers = new Map<string, lambda.LayerVersion>();

  constructor(scope: Construct, id: string, private readonly props: LeaseholdProps) {
    super(scope, id);
    this.table = props.table ?? this.newTable();
  }

  /** Gives a function the layer, the table's name, the permissions and, if it works on batches, the mapping's flag. */
  lock(fn: lambda.Function, options: LockOptions = {}): void {
    // The default timeout of 3 s is shorter than any sensible reserve: every event would be refused.
    if ((fn.timeout?.toSeconds() ?? 3) <= 3) {
      Annotations.of(fn).addWarningV2(
        'leasehold:timeout',
        "Give the function a timeout longer than the layer's `reserve` and `max_wait` together.",
      );
    }
    fn.addLayers(this.layerFor(fn.architecture));
    fn.addEnvironment('LEASEHOLD_TABLE', this.table.tableName);
    for (const [name, value] of Object.entries(options.environment ?? {})) {
      fn.addEnvironment(name, value);
    }
    const features = options.features ?? [];
    const actions = ['dynamodb:UpdateItem', 'dynamodb:GetItem', ...features.flatMap((feature) => ACTIONS[feature])];
    this.table.grant(fn, ...new Set(actions));
    if (options.perRecord) {
      Aspects.of(fn).add({ visit: reportBatchItemFailures });
    }
  }

  /**
   * One row a key. Never put an earlier state of it under running functions, by a restore or otherwise, and never have two
   * tables in use for one set of keys: leases that were given up would be held again, and those that are held would be free.
   */
  private newTable(): dynamodb.Table {
    return new dynamodb.Table(this, 'LockTable', {
      partitionKey: { name: 'key', type: dynamodb.AttributeType.STRING },
      billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
      timeToLiveAttribute: 'ttl',
      deletionProtection: true,
      removalPolicy: RemovalPolicy.RETAIN,
    });
  }

  /** One layer an architecture, made when a function first asks for it. */
  private layerFor(architecture: lambda.Architecture): lambda.LayerVersion {
    const name = architecture === lambda.Architecture.ARM_64 ? 'arm64' : 'x86_64';
    const made = this.layers.get(name);
    if (made) {
      return made;
    }
    const code = this.props.extension[name];
    if (!code) {
      throw new Error(
        `A function for ${name} is to lock, but there is no extension for ${name}: build it with \`cargo lambda build ` +
          `--release --extension --output-format zip --package leasehold-extension --${name.replace('_', '-')}\`, and ` +
          `give it as extension.${name}`,
      );
    }
    const layer = new lambda.LayerVersion(this, `Layer-${name}`, {
      code,
      description: 'leasehold, a Lambda extension that keeps DynamoDB leases for handlers',
      compatibleArchitectures: [architecture],
      compatibleRuntimes: [lambda.Runtime.PROVIDED_AL2023],
    });
    this.layers.set(name, layer);
    return layer;
  }
}

function reportBatchItemFailures(node: IConstruct): void {
  if (node instanceof lambda.CfnEventSourceMapping) {
    node.functionResponseTypes = ['ReportBatchItemFailures'];
  }
}
