export { type EtcdJournalOptions, etcdJournal } from "./etcd-journal.ts";
